// Claim: pollers are called while they are there and never after, also when other threads add
// and remove them; and a scheduler with nothing to do uses no CPU.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/coroutine/completion.h"
#include "runtime/coroutine/scheduler.h"
#include "runtime/coroutine/wait_group.h"

namespace eddy {
namespace {

using Clock = Scheduler::Clock;
using namespace std::chrono_literals;

double cpu_seconds_of_process() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(SchedulerPoll, AnIdleSchedulerUsesNoCpu) {
  Completion go;
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.spawn([&] { go.wait(); }).is_ok());
  scheduler.run_at(Clock::now() + 1h, [] {});
  std::this_thread::sleep_for(50ms);
  const double before = cpu_seconds_of_process();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(cpu_seconds_of_process() - before, 0.03);  // a spinning one would use 0.3
  go.notify();
}

TEST(SchedulerPoll, AfterAPollerIsGoneTheSchedulerIsIdleAgain) {
  Scheduler scheduler;
  std::atomic<int> polls{0};
  const PollerId id = scheduler.add_poller([&] { return ++polls, false; });
  while (polls < 100) std::this_thread::yield();
  scheduler.remove_poller(id);
  const int at_removal = polls;
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(polls, at_removal);
  const double before = cpu_seconds_of_process();
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(cpu_seconds_of_process() - before, 0.03);
}

TEST(SchedulerPoll, APollerThatFindsNothingIsCalledInNapsAndStillServesWakes) {
  Scheduler scheduler({.poll_spin = 100us, .longest_poll_nap = 1ms});
  std::atomic<int> polls{0};
  const PollerId id = scheduler.add_poller([&] { return ++polls, false; });
  std::this_thread::sleep_for(20ms);
  const int before = polls;
  std::this_thread::sleep_for(100ms);
  EXPECT_GT(polls - before, 0);
  EXPECT_LT(polls - before, 2000);  // 100 naps; a spinning one would manage a million
  Completion ran;
  ASSERT_TRUE(scheduler.spawn([&] { ran.notify(); }).is_ok());
  ran.wait();
  scheduler.remove_poller(id);
}

TEST(SchedulerPoll, APollerEndsATasksWait) {
  Scheduler scheduler;
  std::atomic<int> device_word{0};
  int seen = 0;
  Completion ended;
  ASSERT_TRUE(scheduler
                  .spawn([&] {
                    Completion done;
                    PollerId id{};
                    id = scheduler.add_poller([&] {
                      if (device_word == 0) return false;
                      scheduler.remove_poller(id);
                      done.notify();
                      return true;
                    });
                    done.wait("device word");
                    seen = device_word;
                    ended.notify();
                  })
                  .is_ok());
  std::this_thread::sleep_for(5ms);
  device_word = 5;
  ended.wait();
  EXPECT_EQ(seen, 5);
}

TEST(SchedulerPoll, PollersMayAddAndRemovePollersInsideTheirCall) {
  Scheduler scheduler;
  Completion ended;
  std::atomic<int> first_calls{0};
  PollerId first{}, second{};
  WaitGroup added;
  added.add();
  ASSERT_TRUE(scheduler
                  .spawn([&] {
                    first = scheduler.add_poller([&] {
                      if (++first_calls == 3) {
                        second = scheduler.add_poller([&] {
                          scheduler.remove_poller(first);
                          scheduler.remove_poller(second);
                          ended.notify();
                          return true;
                        });
                      }
                      return false;
                    });
                    added.done();
                  })
                  .is_ok());
  ended.wait();
  added.wait();
  std::this_thread::sleep_for(2ms);
  const int calls = first_calls;
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(first_calls, calls);
}

// Another thread must get through to the list although the scheduler polls without pause.
TEST(SchedulerPoll, PollersMayBeAddedAndRemovedFromAnotherThreadAtAnyTime) {
  Scheduler scheduler;
  const PollerId busy = scheduler.add_poller([] { return true; });
  for (int i = 0; i < 300; ++i) {
    auto alive = std::make_unique<std::atomic<int>>(1);
    const PollerId id = scheduler.add_poller([&word = *alive] { return word == 1; });
    if (i % 8 == 0) std::this_thread::yield();
    scheduler.remove_poller(id);
    alive.reset();  // a poller that still ran would read freed memory
  }
  scheduler.remove_poller(busy);
}

// The list is locked nearly always here, and the scheduler takes the lock again at once.
TEST(SchedulerPoll, ASlowPollerDoesNotKeepOtherThreadsOut) {
  Scheduler scheduler;
  std::atomic<int> passes{0};
  const PollerId slow = scheduler.add_poller([&] {
    ++passes;
    const Clock::time_point end = Clock::now() + 100us;
    while (Clock::now() < end) continue;
    return true;
  });
  std::vector<int> passes_during_add;
  for (int i = 0; i < 21; ++i) {
    const int before = passes;
    const PollerId id = scheduler.add_poller([] { return false; });
    passes_during_add.push_back(passes - before);
    scheduler.remove_poller(id);
  }
  std::sort(passes_during_add.begin(), passes_during_add.end());
  EXPECT_LE(passes_during_add[10], 5);
  scheduler.remove_poller(slow);
}

}  // namespace
}  // namespace eddy
