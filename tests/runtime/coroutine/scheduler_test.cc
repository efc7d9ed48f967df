// Claim: the scheduler runs every task to its end on its one thread, fairly, reports what it
// cannot do, and shuts down only when all tasks have ended.
#include "runtime/coroutine/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/coroutine/completion.h"
#include "tests/runtime/coroutine/sleep.h"

namespace eddy {
namespace {

using Clock = Scheduler::Clock;
using namespace std::chrono_literals;

TEST(Scheduler, RunsSpawnedTasksInOrderOnItsOwnThread) {
  std::string trace;
  std::set<std::thread::id> threads;
  {
    Scheduler scheduler;
    for (char name : {'a', 'b', 'c'}) {
      ASSERT_TRUE(scheduler
                      .spawn([&, name] {
                        EXPECT_EQ(Scheduler::current_or_null(), &scheduler);
                        EXPECT_TRUE(Scheduler::is_in_task());
                        threads.insert(std::this_thread::get_id());
                        trace += name;
                      })
                      .is_ok());
    }
    EXPECT_EQ(Scheduler::current_or_null(), nullptr);
    EXPECT_FALSE(Scheduler::is_in_task());
  }
  EXPECT_EQ(trace, "abc");
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0u);
}

TEST(Scheduler, YieldLetsEveryOtherReadyTaskGoFirst) {
  std::string trace;
  {
    Scheduler scheduler;
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      for (char name : {'a', 'b', 'c'}) {
                        EXPECT_TRUE(scheduler
                                        .spawn([&, name] {
                                          for (int i = 0; i < 3; ++i) {
                                            trace += name;
                                            Scheduler::yield();
                                          }
                                        })
                                        .is_ok());
                      }
                    })
                    .is_ok());
  }
  EXPECT_EQ(trace, "abcabcabc");
}

TEST(Scheduler, AYieldingTaskKeepsOutNeitherTimersNorWakesNorPollers) {
  Scheduler scheduler;
  std::atomic<bool> timer{false}, poller{false};
  Completion woken, ended;
  scheduler.run_at(Clock::now() + 1ms, [&] { timer = true; });
  const PollerId id = scheduler.add_poller([&] { return !poller.exchange(true); });
  ASSERT_TRUE(scheduler
                  .spawn([&] {
                    while (!timer || !poller || !woken.is_set()) Scheduler::yield();
                    ended.notify();
                  })
                  .is_ok());
  woken.notify();
  ended.wait();
  scheduler.remove_poller(id);
}

TEST(Scheduler, TheFunctionIsDestroyedOnTheSchedulersThreadBeforeTheTaskEnds) {
  struct Owned {
    ~Owned() { EXPECT_TRUE(Scheduler::is_in_task()); }
  };
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.spawn([owned = std::make_unique<Owned>()] {}).is_ok());
}

TEST(Scheduler, TasksMayThrowAndCatchWhileOthersAreSuspendedInsideCatch) {
  std::atomic<int> right{0};
  {
    Scheduler scheduler;
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(scheduler
                      .spawn([&, i] {
                        try {
                          try {
                            throw std::runtime_error(std::to_string(i));
                          } catch (...) {
                            for (int j = 0; j < i % 5; ++j) Scheduler::yield();
                            throw;
                          }
                        } catch (const std::exception& error) {
                          right += error.what() == std::to_string(i);
                        }
                      })
                      .is_ok());
    }
  }
  EXPECT_EQ(right, 50);
}

TEST(Scheduler, WithoutAStackSpawnIsAnErrorAndTheFunctionIsDestroyedUnrun) {
  Completion go;
  Scheduler scheduler({.stacks = {.max_stacks = 2}});
  ASSERT_TRUE(scheduler.spawn([&] { go.wait(); }).is_ok());
  ASSERT_TRUE(scheduler.spawn([&] { go.wait(); }).is_ok());
  auto owned = std::make_shared<int>(1);
  const Status third = scheduler.spawn([owned] { FAIL(); });
  EXPECT_EQ(third.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(owned.use_count(), 1);
  go.notify();
  Status fourth;
  do {
    fourth = scheduler.spawn([] {});
    std::this_thread::yield();
  } while (!fourth.is_ok());
}

TEST(Scheduler, InspectNamesTheLiveTasksAndWhatTheyWaitFor) {
  Scheduler scheduler;
  Completion go, started;
  ASSERT_TRUE(scheduler.spawn([&] { go.wait("the predicate"); }, "decode").is_ok());
  ASSERT_TRUE(scheduler
                  .spawn(
                      [&] {
                        started.notify();
                        sleep_until(Clock::now() + 50ms);
                      },
                      "sleeper")
                  .is_ok());
  started.wait();
  std::vector<TaskSnapshot> tasks = scheduler.inspect();
  while (tasks.size() == 2 && tasks[1].state != TaskState::kWaiting) tasks = scheduler.inspect();
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].id, 1u);
  EXPECT_EQ(tasks[0].name, "decode");
  EXPECT_EQ(tasks[0].state, TaskState::kWaiting);
  EXPECT_STREQ(tasks[0].waits_for, "the predicate");
  EXPECT_EQ(tasks[1].name, "sleeper");
  EXPECT_STREQ(tasks[1].waits_for, "timer");
  go.notify();
  while (!scheduler.inspect().empty()) std::this_thread::sleep_for(1ms);
}

TEST(Scheduler, DestructionServesTasksThatWaitForTimers) {
  std::atomic<int> ended{0};
  const Clock::time_point start = Clock::now();
  {
    Scheduler scheduler;
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(scheduler
                      .spawn([&, i] {
                        for (int j = 0; j < 3; ++j) sleep_until(Clock::now() + (i % 4) * 1ms);
                        ++ended;
                      })
                      .is_ok());
    }
  }
  EXPECT_EQ(ended, 20);
  EXPECT_LT(Clock::now() - start, 30s);
}

TEST(Scheduler, DestructionWaitsForTasksThatTasksSpawn) {
  std::atomic<int> ended{0};
  std::function<void(int)> chain;
  {
    Scheduler scheduler;
    chain = [&](int left) {
      ++ended;
      if (left > 0) {
        EXPECT_TRUE(scheduler.spawn([&chain, left] { chain(left - 1); }).is_ok());
      }
    };
    ASSERT_TRUE(scheduler.spawn([&] { chain(99); }).is_ok());
  }
  EXPECT_EQ(ended, 100);
}

TEST(Scheduler, DestructionWaitsForATaskThatAnotherThreadWakesLate) {
  Completion done;
  std::atomic<bool> ended{false};
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    done.notify();
  });
  {
    Scheduler scheduler;
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      done.wait();
                      ended = true;
                    })
                    .is_ok());
  }
  EXPECT_TRUE(ended);
  other.join();
}

TEST(Scheduler, TimersLeftAtTheEndAreDroppedUnrun) {
  auto owned = std::make_shared<int>(1);
  {
    Scheduler scheduler;
    scheduler.run_at(Clock::now() + 1h, [owned] { FAIL(); });
  }
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(Scheduler, SeveralSchedulersWorkSideBySide) {
  std::atomic<int> rounds{0};
  {
    Scheduler first, second;
    Completion ping[100], pong[100];
    ASSERT_TRUE(first
                    .spawn([&] {
                      for (int i = 0; i < 100; ++i) {
                        ping[i].notify();
                        pong[i].wait();
                      }
                      rounds += 100;
                    })
                    .is_ok());
    ASSERT_TRUE(second
                    .spawn([&] {
                      for (int i = 0; i < 100; ++i) {
                        ping[i].wait();
                        pong[i].notify();
                      }
                      rounds += 100;
                    })
                    .is_ok());
    while (rounds < 200) std::this_thread::yield();
  }
}

TEST(SchedulerDeathTest, AnExceptionThatLeavesATaskIsACheckThatNamesIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Scheduler scheduler;
        (void)scheduler.spawn([] { throw std::runtime_error("lost"); }, "decode");
      },
      "task 'decode' threw: lost");
}

TEST(SchedulerDeathTest, YieldingOutsideATaskIsACheck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Scheduler::yield(), "only a task may yield");
}

TEST(SchedulerDeathTest, YieldingOnTheThreadsStackIsACheck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Scheduler scheduler;
        (void)scheduler.spawn(
            [] { Scheduler::call_on_thread_stack([](void*) { Scheduler::yield(); }, nullptr); });
      },
      "on the thread's stack may not wait, yield");
}

TEST(Scheduler, ATaskMayCallFunctionsThatNeedMoreStackThanItHas) {
  constexpr size_t kLarge = 2 << 20;  // eight times a task's stack
  size_t sum = 0;
  int calls = 0;
  {
    Scheduler scheduler;
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      for (calls = 0; calls < 3; ++calls) {
                        Scheduler::call_on_thread_stack(
                            [](void* result) {
                              EXPECT_FALSE(Scheduler::is_in_task());
                              volatile char large[kLarge];
                              for (size_t i = 0; i < kLarge; i += 4096) large[i] = 1;
                              for (size_t i = 0; i < kLarge; i += 4096) {
                                *static_cast<size_t*>(result) += static_cast<size_t>(large[i]);
                              }
                            },
                            &sum);
                        Scheduler::yield();
                      }
                    })
                    .is_ok());
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(sum, 3 * kLarge / 4096);
}

}  // namespace
}  // namespace eddy
