// Claim: pollers are called while they are there and never after, also when other threads add
// and remove them, and between tasks that take long; and a scheduler with nothing to do sleeps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/coroutine/completion.h"
#include "runtime/coroutine/scheduler.h"
#include "tests/runtime/coroutine/wait_group.h"

namespace eddy {
namespace {

using Clock = Scheduler::Clock;
using namespace std::chrono_literals;

// The system's data about one thread of this process.
struct ThreadStatus {
  char state = '?';             // S: it sleeps
  std::int64_t num_sleeps = 0;  // how often it has given up the processor by itself
};

class SchedulerThread {
 public:
  explicit SchedulerThread(Scheduler& scheduler) {
    Completion known;
    EXPECT_TRUE(scheduler
                    .spawn([&] {
                      path_ = "/proc/self/task/" + std::to_string(gettid()) + "/status";
                      known.notify();
                    })
                    .is_ok());
    known.wait();
  }
  ThreadStatus status() const {
    ThreadStatus status;
    std::ifstream file(path_);
    for (std::string key; file >> key;) {
      if (key == "State:") file >> status.state;
      if (key == "voluntary_ctxt_switches:") file >> status.num_sleeps;
    }
    return status;
  }
  // Waits until it sleeps; returns how often it has slept by then.
  std::int64_t await_sleep() const {
    for (;;) {
      const ThreadStatus now = status();
      if (now.state == 'S') return now.num_sleeps;
      std::this_thread::yield();
    }
  }
  // Waits until it has slept for a while.
  std::int64_t await_lasting_sleep() const {
    std::int64_t sleeps = await_sleep();
    for (std::int64_t before = -1; before != sleeps; sleeps = await_sleep()) {
      before = sleeps;
      std::this_thread::sleep_for(20ms);
    }
    return sleeps;
  }

 private:
  std::string path_;
};

TEST(SchedulerPoll, AnIdleSchedulerSleepsUntilItIsWoken) {
  Completion go;
  Scheduler scheduler;
  const SchedulerThread thread(scheduler);
  ASSERT_TRUE(scheduler.spawn([&] { go.wait(); }).is_ok());
  scheduler.run_at(Clock::now() + 1h, [] {});
  const std::int64_t sleeps = thread.await_lasting_sleep();
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(thread.status().num_sleeps, sleeps);
  EXPECT_EQ(thread.status().state, 'S');
  go.notify();
}

TEST(SchedulerPoll, AfterAPollerIsGoneTheSchedulerIsIdleAgain) {
  Scheduler scheduler;
  const SchedulerThread thread(scheduler);
  std::atomic<int> polls{0};
  const PollerId id = scheduler.add_poller([&] { return ++polls, false; });
  while (polls < 100) std::this_thread::yield();
  scheduler.remove_poller(id);
  const int at_removal = polls;
  // It may be on its way into one last nap.
  const std::int64_t sleeps = thread.await_lasting_sleep();
  EXPECT_EQ(polls, at_removal);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(thread.status().num_sleeps, sleeps);
}

TEST(SchedulerPoll, APollerThatFindsNothingIsCalledInNapsAndStillServesWakes) {
  Scheduler scheduler({.idle = {.poll_spin = 100us, .longest_nap = 1ms}});
  const SchedulerThread thread(scheduler);
  std::atomic<int> polls{0};
  const PollerId id = scheduler.add_poller([&] { return ++polls, false; });
  std::this_thread::sleep_for(20ms);
  const int before = polls;
  const std::int64_t sleeps = thread.status().num_sleeps;
  while (thread.status().num_sleeps < sleeps + 50) std::this_thread::yield();
  // A nap before each: a spinning thread would manage thousands.
  EXPECT_GT(polls - before, 0);
  EXPECT_LT(polls - before, 500);
  Completion ran;
  ASSERT_TRUE(scheduler.spawn([&] { ran.notify(); }).is_ok());
  ran.wait();
  scheduler.remove_poller(id);
}

TEST(SchedulerPoll, APollerThatMayBeLateIsCalledAsRarelyAndAtOnceAfterAPoke) {
  Scheduler scheduler({.idle = {.poll_spin = 100us, .longest_nap = 100us}});
  const SchedulerThread thread(scheduler);
  std::atomic<int> polls{0};
  std::atomic<bool> is_soon{false};
  const auto slack = [&] { return PollSet::Slack(is_soon ? 0s : 1h); };
  const PollerId id = scheduler.add_poller([&] { return ++polls, false; }, slack);
  thread.await_lasting_sleep();
  const int before = polls;
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(polls, before);
  is_soon = true;
  scheduler.poke();
  while (polls < before + 50) std::this_thread::yield();
  scheduler.remove_poller(id);
}

TEST(SchedulerPoll, ATaskThatWaitsForALatePollerKeepsNoProcessorBusy) {
  // It would spin for an hour, or until the end that is expected.
  Scheduler scheduler({.idle = {.poll_spin = 1h, .longest_nap = 100us}});
  const SchedulerThread thread(scheduler);
  std::atomic<int> polls{0};
  const PollerId id =
      scheduler.add_poller([&] { return ++polls, false; }, [] { return PollSet::Slack(1h); });
  Completion end;
  Completion ended;
  ASSERT_TRUE(scheduler
                  .spawn([&] {
                    end.wait();
                    ended.notify();
                  })
                  .is_ok());
  scheduler.expect_end(std::chrono::steady_clock::now() + 1h);
  thread.await_lasting_sleep();
  const int before = polls;
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(polls, before);
  end.notify();
  ended.wait();
  scheduler.remove_poller(id);
}

TEST(SchedulerPoll, PollersHaveTheirTurnBetweenLongCallsOfReadyTasks) {
  constexpr int kTasks = 20;
  struct Call {
    std::atomic<int>& polls;
    std::vector<int>& polls_before;
    static void run(void* call) {
      auto& self = *static_cast<Call*>(call);
      self.polls_before.push_back(self.polls);
      const Clock::time_point end = Clock::now() + 300us;
      while (Clock::now() < end) {
      }
    }
  };
  std::atomic<int> polls{0};
  std::vector<int> polls_before;
  {
    Scheduler scheduler;
    const PollerId id = scheduler.add_poller([&] { return ++polls, false; });
    Completion done;
    std::atomic<int> num_left{kTasks};
    ASSERT_TRUE(scheduler
                    .spawn([&] {  // so all of them are ready at once
                      for (int i = 0; i < kTasks; ++i) {
                        ASSERT_TRUE(scheduler
                                        .spawn([&] {
                                          Call call{polls, polls_before};
                                          Scheduler::call_on_thread_stack(Call::run, &call);
                                          if (--num_left == 0) done.notify();
                                        })
                                        .is_ok());
                      }
                    })
                    .is_ok());
    done.wait();
    scheduler.remove_poller(id);
  }
  ASSERT_EQ(polls_before.size(), static_cast<size_t>(kTasks));
  for (size_t i = 2; i < polls_before.size(); ++i) {
    EXPECT_GT(polls_before[i], polls_before[i - 1]) << "call " << i;
  }
}

TEST(SchedulerPoll, ALongWaitIsLookedAtRarely) {
  Completion go;
  Scheduler scheduler;
  const SchedulerThread thread(scheduler);
  std::atomic<int> polls{0};
  const PollerId id = scheduler.add_poller([&] { return ++polls, false; });
  ASSERT_TRUE(scheduler.spawn([&] { go.wait(); }).is_ok());
  std::this_thread::sleep_for(100ms);
  const int before = polls;
  const Clock::time_point begin = Clock::now();
  std::this_thread::sleep_for(100ms);
  const int looks = polls - before;
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  // One each millisecond from then on; a busy machine has fewer.
  EXPECT_LT(looks, elapsed.count() * 3 / 2 + 20);
  go.notify();
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
