// Claim: a timer's callback runs once, in time order, never early, and never after its cancel
// returned true.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/coroutine/completion.h"
#include "runtime/coroutine/scheduler.h"
#include "tests/runtime/coroutine/sleep.h"

namespace eddy {
namespace {

using Clock = Scheduler::Clock;
using namespace std::chrono_literals;

TEST(Timers, RunInOrderOfTimeThenOfAddingAndNeverEarly) {
  Scheduler scheduler;
  Completion last;
  std::vector<int> order;
  const Clock::time_point start = Clock::now();
  const auto add = [&](int number, Clock::duration after) {
    scheduler.run_at(start + after, [&, number, after] {
      EXPECT_GE(Clock::now(), start + after);
      order.push_back(number);
    });
  };
  add(3, 30ms);
  add(1, 20ms);
  add(2, 20ms);
  add(0, 10ms);
  scheduler.run_at(start + 40ms, [&] { last.notify(); });
  last.wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Timers, ATimeInThePastMeansSoon) {
  Scheduler scheduler;
  Completion first, second;
  scheduler.run_at(Clock::time_point::min(), [&] { first.notify(); });
  first.wait();
  scheduler.run_at(Clock::now() - 1h, [&] { second.notify(); });
  second.wait();
}

TEST(Timers, AnEarlierTimerFromAnotherThreadShortensTheSleep) {
  Scheduler scheduler;
  scheduler.run_at(Clock::now() + 1h, [] { FAIL(); });
  std::this_thread::sleep_for(5ms);  // it sleeps until that hour now
  Completion soon;
  const Clock::time_point before = Clock::now();
  scheduler.run_at(before + 2ms, [&] { soon.notify(); });
  soon.wait();
  EXPECT_LT(Clock::now() - before, 30s);
}

TEST(Timers, ACancelledTimerNeverRunsAndIsCancelledOnce) {
  Scheduler scheduler;
  const TimerId id = scheduler.run_at(Clock::now() + 5ms, [] { FAIL(); });
  EXPECT_TRUE(scheduler.cancel_timer(id));
  EXPECT_FALSE(scheduler.cancel_timer(id));
  EXPECT_FALSE(scheduler.cancel_timer(TimerId{}));
  std::this_thread::sleep_for(10ms);
}

TEST(Timers, CancellingAfterItRanSaysSo) {
  Scheduler scheduler;
  Completion ran;
  const TimerId id = scheduler.run_at(Clock::now(), [&] { ran.notify(); });
  ran.wait();
  EXPECT_FALSE(scheduler.cancel_timer(id));
}

TEST(Timers, ACallbackMayAddAndCancelTimers) {
  Scheduler scheduler;
  Completion ended;
  int runs = 0;
  TimerId own;
  std::function<void()> again = [&] {
    EXPECT_FALSE(scheduler.cancel_timer(own));
    const TimerId other = scheduler.run_at(Clock::now() + 1h, [] { FAIL(); });
    EXPECT_TRUE(scheduler.cancel_timer(other));
    if (++runs == 1000) return ended.notify();
    own = scheduler.run_at(Clock::now(), again);
  };
  scheduler.run_at(Clock::now(), again);
  ended.wait();
  EXPECT_EQ(runs, 1000);
}

TEST(Timers, ATimerThatAlwaysReturnsDoesNotStarveTasks) {
  std::atomic<bool> stop{false};
  std::function<void()> again;
  Scheduler scheduler;
  again = [&] {
    if (!stop) scheduler.run_at(Clock::time_point::min(), again);
  };
  scheduler.run_at(Clock::now(), again);
  Completion ended;
  ASSERT_TRUE(scheduler
                  .spawn([&] {
                    for (int i = 0; i < 100; ++i) Scheduler::yield();
                    stop = true;
                    ended.notify();
                  })
                  .is_ok());
  ended.wait();
}

// Each timer is either cancelled or run, never both, never neither.
TEST(Timers, CancelRacesWithRunningAndExactlyOneWins) {
  constexpr int kTimers = 5'000;
  std::vector<std::atomic<int>> ran(kTimers);
  std::vector<char> cancelled(kTimers, 0);
  Completion last;
  Scheduler scheduler;
  for (int i = 0; i < kTimers; ++i) {
    const TimerId id = scheduler.run_at(Clock::now() + (i % 7) * 1us, [&ran, i] { ++ran[i]; });
    if (i % 3 == 0) std::this_thread::yield();
    cancelled[i] = scheduler.cancel_timer(id);
    if (cancelled[i]) {
      ASSERT_EQ(ran[i], 0);
    }
  }
  scheduler.run_at(Clock::now() + 1ms, [&] { last.notify(); });
  last.wait();
  for (int i = 0; i < kTimers; ++i) ASSERT_EQ(ran[i] + cancelled[i], 1) << "timer " << i;
}

TEST(Timers, TasksSleepSideBySide) {
  const Clock::time_point start = Clock::now();
  {
    Scheduler scheduler;
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(scheduler
                      .spawn([&] {
                        sleep_until(start + 50ms);
                        EXPECT_GE(Clock::now(), start + 50ms);
                      })
                      .is_ok());
    }
  }
  EXPECT_LT(Clock::now() - start, 4s);
}

}  // namespace
}  // namespace eddy
