// Claim: a wait ends exactly when its notify came, whether before, at or after the wait, from
// any thread; and the waiter may destroy the completion or group at once.
#include "runtime/coroutine/completion.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/coroutine/scheduler.h"
#include "runtime/coroutine/wait_group.h"

namespace eddy {
namespace {

using namespace std::chrono_literals;

TEST(Completion, AWaitAfterNotifyReturnsAtOnce) {
  Completion done;
  EXPECT_FALSE(done.is_set());
  done.notify();
  EXPECT_TRUE(done.is_set());
  done.wait();  // this thread, too, may wait
  Scheduler scheduler;
  EXPECT_TRUE(scheduler.spawn([&] { done.wait(); }).is_ok());
}

TEST(Completion, ANotifyFromAnotherThreadEndsATasksWait) {
  Completion done;
  int written = 0, seen = 0;
  {
    Scheduler scheduler;
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      done.wait();
                      seen = written;
                    })
                    .is_ok());
    std::this_thread::sleep_for(5ms);
    written = 42;
    done.notify();
  }
  EXPECT_EQ(seen, 42);
}

TEST(Completion, ATaskNotifiesATask) {
  std::string trace;
  {
    Completion done, answered;
    Scheduler scheduler;
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      done.wait();
                      trace += "b";
                      answered.notify();
                    })
                    .is_ok());
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      trace += "a";
                      done.notify();
                      answered.wait();
                      trace += "c";
                    })
                    .is_ok());
    answered.wait();
  }
  EXPECT_EQ(trace, "abc");
}

TEST(Completion, AThreadMayWaitForATask) {
  Scheduler scheduler;
  Completion done;
  int value = 0;
  ASSERT_TRUE(scheduler
                  .spawn([&] {
                    Scheduler::sleep_until(Scheduler::Clock::now() + 5ms);
                    value = 1;
                    done.notify();
                  })
                  .is_ok());
  done.wait();
  EXPECT_EQ(value, 1);
}

TEST(Completion, OneNotifyEndsAllWaitsOfTasksAndThreads) {
  std::atomic<int> ended{0};
  {
    Completion done;
    Scheduler first, second;
    for (int i = 0; i < 10; ++i) {
      for (Scheduler* scheduler : {&first, &second}) {
        ASSERT_TRUE(scheduler
                        ->spawn([&] {
                          done.wait();
                          ++ended;
                        })
                        .is_ok());
      }
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        done.wait();
        ++ended;
      });
    }
    std::this_thread::sleep_for(2ms);
    done.notify();
    for (std::thread& thread : threads) thread.join();
    while (ended != 24) std::this_thread::yield();
  }
  EXPECT_EQ(ended, 24);
}

TEST(Completion, IsReusableAfterReset) {
  Scheduler scheduler;
  Completion done, turn, ended;
  ASSERT_TRUE(scheduler
                  .spawn([&] {
                    for (int i = 0; i < 1000; ++i) {
                      done.wait();
                      done.reset();
                      turn.notify();
                    }
                    ended.notify();
                  })
                  .is_ok());
  for (int i = 0; i < 1000; ++i) {
    done.notify();
    turn.wait();
    turn.reset();
  }
  ended.wait();
}

// The notifier races with the wait and with the destruction that follows it. Sanitizers see
// any touch after the end.
TEST(Completion, MayBeDestroyedAsSoonAsTheWaitEnds) {
  std::atomic<Completion*> handed{nullptr};
  std::atomic<bool> stop{false};
  std::thread notifier([&] {
    while (!stop) {
      Completion* done = handed.exchange(nullptr);
      done != nullptr ? done->notify() : std::this_thread::yield();
    }
  });
  {
    Scheduler scheduler;
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      for (int i = 0; i < 5'000; ++i) {
                        auto done = std::make_unique<Completion>();
                        handed = done.get();
                        done->wait();
                      }
                    })
                    .is_ok());
  }
  for (int i = 0; i < 2'000; ++i) {
    auto done = std::make_unique<Completion>();
    handed = done.get();
    done->wait();
  }
  stop = true;
  notifier.join();
}

// The last notify lets the scheduler end: it must not be touched after that.
TEST(Completion, TheSchedulerMayBeDestroyedWhileANotifyIsOnItsWayOut) {
  std::atomic<Completion*> handed{nullptr};
  std::atomic<bool> stop{false};
  std::thread notifier([&] {
    while (!stop) {
      Completion* done = handed.exchange(nullptr);
      done != nullptr ? done->notify() : std::this_thread::yield();
    }
  });
  for (int i = 0; i < 200; ++i) {
    auto scheduler = std::make_unique<Scheduler>();
    auto done = std::make_unique<Completion>();
    ASSERT_TRUE(scheduler->spawn([&] { done->wait(); }).is_ok());
    handed = done.get();
    scheduler.reset();
  }
  stop = true;
  notifier.join();
}

TEST(CompletionDeathTest, WaitingInATimerIsACheck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Completion never;
        Scheduler scheduler;
        scheduler.run_at(Scheduler::Clock::now(), [&] { never.wait(); });
        std::this_thread::sleep_for(10s);
      },
      "only a task may wait");
}

TEST(WaitGroup, WaitsForAllAndIsReusable) {
  Scheduler scheduler;
  Completion ended;
  ASSERT_TRUE(scheduler
                  .spawn([&] {
                    WaitGroup group;
                    for (int round = 0; round < 100; ++round) {
                      int finished = 0;
                      for (int i = 0; i < 10; ++i) {
                        group.add();
                        EXPECT_TRUE(scheduler
                                        .spawn([&] {
                                          Scheduler::yield();
                                          ++finished;
                                          group.done();
                                        })
                                        .is_ok());
                      }
                      group.wait();
                      EXPECT_EQ(finished, 10);
                    }
                    ended.notify();
                  })
                  .is_ok());
  ended.wait();
}

TEST(WaitGroup, WaitingForNothingReturnsAtOnce) {
  WaitGroup group;
  group.wait();
  group.add(2);
  group.done();
  group.done();
  group.wait();
}

TEST(WaitGroup, MayBeDestroyedAsSoonAsTheWaitEnds) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 1'000;
  std::atomic<WaitGroup*> handed[kThreads] = {};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (auto& slot : handed) {
    threads.emplace_back([&] {
      while (!stop) {
        WaitGroup* group = slot.exchange(nullptr);
        group != nullptr ? group->done() : std::this_thread::yield();
      }
    });
  }
  {
    Scheduler scheduler;
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      for (int i = 0; i < kRounds; ++i) {
                        auto group = std::make_unique<WaitGroup>();
                        group->add(kThreads);
                        for (auto& slot : handed) slot = group.get();
                        group->wait();
                      }
                    })
                    .is_ok());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(WaitGroupDeathTest, ADoneTooManyIsACheck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        WaitGroup group;
        group.done();
        group.wait();
      },
      "more often than add");
}

}  // namespace
}  // namespace eddy
