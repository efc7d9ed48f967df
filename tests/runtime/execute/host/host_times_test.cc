// Claim: a task that runs commands on the scheduler's thread gives way in time, by the clock, also
// in straight code, and whatever was estimated: what turns out to take long is run by workers, and
// so is a loop of one strand that outlasts its turn. No work runs on a task's stack.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "runtime/coroutine/scheduler.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/execute/host/host_strands.h"
#include "tests/runtime/device/strand_builder.h"

namespace eddy {
namespace {

std::atomic<int64_t> clock_ns{0};

class HostTimesTest : public ::testing::Test {
 protected:
  // Work that takes this long, by the test's clock.
  struct Sleep {
    HostTimesTest* test;
    int64_t ns;
    std::atomic<int>* num_here;
    static bool run(void* sleep) {
      auto& self = *static_cast<Sleep*>(sleep);
      if (Scheduler::is_in_task()) ++self.test->num_on_small_stacks_;
      ++self.test->num_run_;
      if (Scheduler::current_or_null() == nullptr) return true;  // a worker
      ++*self.num_here;
      clock_ns += self.ns;
      return true;
    }
  };
  void finish() {
    commands_.finish();
    strands_ = std::make_unique<HostStrands>(
        commands_.code(), commands_.bindings(), scheduler_,
        HostStrands::Options{.devices = {&device_}, .now = [] { return clock_ns.load(); }});
  }
  // The longest, by the clock, for which another task waits for its turn while the commands run.
  int64_t longest_stretch() {
    std::atomic<int64_t> longest{0};
    std::atomic<bool> is_done{false};
    Completion other;
    const Status spawned = scheduler_.spawn([&] {
      for (int64_t last = clock_ns; !is_done; last = clock_ns) {
        Scheduler::yield();
        longest = std::max<int64_t>(longest, clock_ns - last);
      }
      other.notify();
    });
    EXPECT_TRUE(spawned.is_ok());
    RunControl control;
    control.on_complete = [](void* done) { static_cast<std::atomic<bool>*>(done)->store(true); };
    control.context = &is_done;
    strands_->start(control);
    while (!is_done) std::this_thread::yield();
    other.wait();
    EXPECT_FALSE(control.is_stopped());
    return longest;
  }

  CpuDevice device_{CpuDeviceOptions{.num_threads = 1}};
  Scheduler scheduler_;
  testing::StrandBuilder commands_;
  std::unique_ptr<HostStrands> strands_;
  std::atomic<int> num_on_small_stacks_{0};
  std::atomic<int> num_run_{0};
  std::atomic<int> num_here_{0};
};

TEST_F(HostTimesTest, StraightCheapCommandsGiveWay) {
  std::vector<Sleep> sleeps(500, Sleep{this, 9'000, &num_here_});
  for (Sleep& sleep : sleeps) commands_.launch(Sleep::run, &sleep, true);
  finish();
  for (int i = 0; i < 3; ++i) EXPECT_LT(longest_stretch(), 200'000);
  EXPECT_EQ(num_run_, 1500);
  EXPECT_EQ(num_here_, 1500) << "all of them are cheap";
  EXPECT_EQ(num_on_small_stacks_, 0);
}

TEST_F(HostTimesTest, WhatIsNotCheapGoesToWorkers) {
  constexpr int64_t kSlowNs = 5'000'000;
  std::vector<Sleep> sleeps(20, Sleep{this, 1'000, &num_here_});
  std::atomic<int> num_slow_here{0};
  sleeps[7] = {this, kSlowNs, &num_slow_here};
  struct Rounds {
    int left;
    static int32_t test(void* rounds) { return static_cast<Rounds*>(rounds)->left-- > 0 ? 1 : 0; }
  } rounds{50};
  commands_.begin_while();
  commands_.test_while(Rounds::test, &rounds);
  for (Sleep& sleep : sleeps) commands_.launch(Sleep::run, &sleep, true);
  commands_.record(commands_.add_event());  // so that no worker executes the loop
  commands_.end_while();
  finish();
  EXPECT_LT(longest_stretch(), kSlowNs + 200'000) << "one at a time until it is known";
  EXPECT_EQ(num_run_, 1000);
  EXPECT_EQ(num_slow_here, InlineTimes::kTimings);
  rounds.left = 50;
  EXPECT_LT(longest_stretch(), 200'000);
  EXPECT_EQ(num_run_, 2000);
  EXPECT_EQ(num_on_small_stacks_, 0);
}

struct Rounds {
  std::atomic<int> left;
  static int32_t test(void* rounds) { return static_cast<Rounds*>(rounds)->left-- > 0 ? 1 : 0; }
};

TEST_F(HostTimesTest, ALoopThatOutlastsItsTurnGoesToAWorkerWhole) {
  Sleep cheap{this, 10, &num_here_};
  Sleep outside{this, 10, &num_here_};
  Rounds outer{3}, inner{0};
  struct Begin {
    Rounds& inner;
    static bool run(void* begin) { return static_cast<Begin*>(begin)->inner.left = 1000, true; }
  } begin{inner};
  commands_.launch(Sleep::run, &outside, true);
  commands_.begin_while();
  commands_.test_while(Rounds::test, &outer);
  commands_.launch(Begin::run, &begin, true);
  commands_.begin_while();
  commands_.test_while(Rounds::test, &inner);
  commands_.launch(Sleep::run, &cheap, true);
  commands_.end_while();
  commands_.end_while();
  commands_.launch(Sleep::run, &outside, true);
  finish();
  for (int run = 0; run < 3; ++run) {
    num_run_ = num_here_ = 0;
    outer.left = 3;
    EXPECT_LT(longest_stretch(), 200'000);
    EXPECT_EQ(num_run_, 3002);
    EXPECT_LE(num_here_, 66) << "one turn of 64 decisions, and what stands outside";
    EXPECT_EQ(num_on_small_stacks_, 0);
  }
}

TEST_F(HostTimesTest, ALoopOnAWorkerIsStoppedAndFails) {
  struct Fail {
    RunControl* control;
    int left;
    StopReason reason;
    static bool run(void* fail) {
      auto& self = *static_cast<Fail*>(fail);
      if (--self.left > 0) return true;
      if (self.reason == StopReason::kFailed) return false;
      self.control->request_stop(self.reason);
      return true;
    }
  } fail{nullptr, 0, StopReason::kFailed};
  Rounds rounds{1'000'000};
  commands_.begin_while();
  commands_.test_while(Rounds::test, &rounds);
  commands_.launch(Fail::run, &fail, true);
  commands_.end_while();
  finish();
  for (const StopReason reason : {StopReason::kFailed, StopReason::kCancelled}) {
    std::atomic<bool> is_done{false};
    RunControl control;
    control.on_complete = [](void* done) { static_cast<std::atomic<bool>*>(done)->store(true); };
    control.context = &is_done;
    fail = {&control, 1000, reason};
    rounds.left = 1'000'000;
    strands_->start(control);
    while (!is_done) std::this_thread::yield();
    EXPECT_EQ(control.stop.load(), reason);
    EXPECT_GE(rounds.left, 1'000'000 - 1001);
  }
}

}  // namespace
}  // namespace eddy
