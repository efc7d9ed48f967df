// Claim: no wake is lost and no task is forgotten under load from many threads. Nothing here
// has a deadline of its own: a lost wake hangs the test.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/coroutine/completion.h"
#include "runtime/coroutine/scheduler.h"
#include "tests/runtime/coroutine/wait_group.h"

namespace eddy {
namespace {

using Clock = Scheduler::Clock;
using namespace std::chrono_literals;

TEST(SchedulerStress, AHundredThousandTasksSpawnedByATaskAllFinish) {
  constexpr int kTasks = 100'000;
  int finished = 0;
  Scheduler scheduler;
  Completion ended;
  ASSERT_TRUE(scheduler
                  .spawn([&] {
                    WaitGroup group;
                    for (int i = 0; i < kTasks; ++i) {
                      group.add();
                      ASSERT_TRUE(scheduler
                                      .spawn([&] {
                                        if (++finished % 3 == 0) Scheduler::yield();
                                        group.done();
                                      })
                                      .is_ok());
                      if (i % 1000 == 0) Scheduler::yield();
                    }
                    group.wait();
                    ended.notify();
                  })
                  .is_ok());
  ended.wait();
  EXPECT_EQ(finished, kTasks);
}

TEST(SchedulerStress, AHundredThousandTasksSpawnedByFourThreadsAllFinish) {
  constexpr int kThreads = 4;
  constexpr int kTasksEach = 25'000;
  int finished = 0;
  {
    Scheduler scheduler;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kTasksEach; ++i) {
          // Spawners may outrun the scheduler; then the honest answer is an error.
          while (!scheduler.spawn([&] { ++finished; }).is_ok()) std::this_thread::yield();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(finished, kThreads * kTasksEach);
}

// Each thread serves its own tasks: takes a waiting completion, notifies it after a pause of
// random length, from none to long enough for the scheduler to sleep.
TEST(SchedulerStress, WakesFromEightThreadsAreNeverLost) {
  constexpr int kThreads = 8;
  constexpr int kTasksEach = 8;
  constexpr int kRounds = 1'000;
  struct Slot {
    std::atomic<Completion*> waiting{nullptr};
  };
  std::vector<Slot> slots(kThreads * kTasksEach);
  std::atomic<int> unfinished{kThreads * kTasksEach};
  {
    Scheduler scheduler;
    for (Slot& slot : slots) {
      ASSERT_TRUE(scheduler
                      .spawn([&] {
                        for (int i = 0; i < kRounds; ++i) {
                          Completion done;
                          slot.waiting.store(&done, std::memory_order_release);
                          done.wait();
                        }
                        --unfinished;
                      })
                      .is_ok());
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::minstd_rand random(t + 1);
        while (unfinished > 0) {
          for (int i = 0; i < kTasksEach; ++i) {
            Completion* done = slots[t * kTasksEach + i].waiting.exchange(nullptr);
            if (done != nullptr) done->notify();
            if (random() % 512 == 0) std::this_thread::sleep_for(60us);
          }
          std::this_thread::yield();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(unfinished, 0);
}

// A task and a thread answer each other; both sleep in between, so every round crosses the
// border between awake and asleep.
TEST(SchedulerStress, PingPongWithASleepingThreadNeverHangs) {
  constexpr int kRounds = 5'000;
  for (const auto spin : {0ns, 5'000ns}) {
    Scheduler scheduler({.idle = {.spin = spin}});
    Completion ping, pong;
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      for (int i = 0; i < kRounds; ++i) {
                        ping.wait();
                        ping.reset();
                        pong.notify();
                      }
                    })
                    .is_ok());
    for (int i = 0; i < kRounds; ++i) {
      ping.notify();
      pong.wait();
      pong.reset();
    }
  }
}

// Timers, pokes, spawns and wakes from several threads against a scheduler without any spin,
// which therefore falls asleep at every chance.
TEST(SchedulerStress, EverySourceOfWorkWakesASleepyScheduler) {
  constexpr int kRounds = 1'500;
  Scheduler scheduler({.idle = {.spin = 0ns, .poll_spin = 0ns}});
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int i = 0; i < kRounds; ++i) {
      Completion ran;
      scheduler.run_at(Clock::now() + (i % 3) * 5us, [&] { ran.notify(); });
      ran.wait();
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < kRounds; ++i) {
      Completion ran;
      ASSERT_TRUE(scheduler.spawn([&] { ran.notify(); }).is_ok());
      ran.wait();
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < kRounds; ++i) {
      Completion polled;
      const PollerId id = scheduler.add_poller([&] { return polled.notify(), true; });
      polled.wait();
      scheduler.remove_poller(id);
    }
  });
  for (std::thread& thread : threads) thread.join();
}

TEST(SchedulerStress, ManySchedulersStartAndEnd) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 300; ++i) {
    Scheduler scheduler;
    if (i % 2 == 0) {
      ASSERT_TRUE(scheduler.spawn([&] { ++ran; }).is_ok());
    }
  }
  EXPECT_EQ(ran, 150);
}

}  // namespace
}  // namespace eddy
