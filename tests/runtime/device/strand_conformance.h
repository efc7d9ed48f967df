// What strands promise on every device that executes them, where work is a function that the
// device calls:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, StrandConformance, testing::Values(make_cpu_device));
#pragma once

#include "tests/runtime/device/conformance.h"
#include "tests/runtime/device/strand_builder.h"

namespace eddy::testing {

class StrandConformance : public ::testing::TestWithParam<DeviceFactory> {
 protected:
  void run(bool here) {
    control_.on_complete = [](void* done) { static_cast<std::atomic<bool>*>(done)->store(true); };
    control_.context = &is_done_;
    is_done_ = false;
    here ? runner_->run_here(control_) : runner_->start(control_);
    while (!is_done_) tested_->progress();
  }

  std::unique_ptr<TestedDevice> tested_ = GetParam()();
  // The commands of the strands; a call of finish() ends them.
  StrandBuilder commands_;
  void finish() {
    commands_.finish();
    runner_ = tested_->device().create_runner_or_null(commands_.code(), commands_.bindings());
  }
  std::unique_ptr<StrandRunner> runner_;
  RunControl control_;
  std::atomic<bool> is_done_{false};
};

struct Counter {
  int value = 0;
  int limit = 0;
  static bool bump(void* counter) {
    ++static_cast<Counter*>(counter)->value;
    return true;
  }
  static bool clear(void* counter) {
    static_cast<Counter*>(counter)->value = 0;
    return true;
  }
  static int32_t is_below(void* counter) {
    const auto& self = *static_cast<Counter*>(counter);
    return self.value < self.limit ? 1 : 0;
  }
};

TEST_P(StrandConformance, NestedLoopsRunTheProductOfTheirRounds) {
  Counter outer{0, 30};
  Counter inner{0, 20};
  Counter total;
  commands_.launch(Counter::clear, &outer);
  commands_.begin_while();
  commands_.test_while(Counter::is_below, &outer);
  commands_.launch(Counter::bump, &outer);
  commands_.launch(Counter::clear, &inner);
  commands_.begin_while();
  commands_.test_while(Counter::is_below, &inner);
  commands_.launch(Counter::bump, &inner);
  commands_.launch(Counter::bump, &total);
  commands_.end_while();
  commands_.end_while();
  finish();
  run(true);
  run(false);
  EXPECT_EQ(total.value, 2 * 600);
}

TEST_P(StrandConformance, ACaseRunsOneBranchOrNone) {
  struct Selected {
    int32_t which = 0;
    static int32_t select(void* self) { return static_cast<Selected*>(self)->which; }
  } selected;
  Counter branches[2];
  Counter behind;
  commands_.begin_case(Selected::select, &selected, 2);
  for (Counter& branch : branches) {
    commands_.begin_branch();
    commands_.launch(Counter::bump, &branch);
  }
  commands_.end_case();
  commands_.launch(Counter::bump, &behind);
  finish();
  for (int32_t which : {0, 1, 1, 2}) {
    selected.which = which;
    run(true);
  }
  EXPECT_EQ(branches[0].value, 1);
  EXPECT_EQ(branches[1].value, 2);
  EXPECT_EQ(behind.value, 4);
}

TEST_P(StrandConformance, ForkedStrandsMeetAtTheirEventsEachRound) {
  Counter rounds{0, 2000};
  Counter here, there;
  int num_wrong = 0;
  struct Check {
    Counter* here;
    Counter* there;
    int* num_wrong;
    static bool run(void* self) {
      auto& check = *static_cast<Check*>(self);
      if (check.here->value != check.there->value) ++*check.num_wrong;
      return true;
    }
  } check{&here, &there, &num_wrong};
  const uint32_t event = commands_.add_event();
  commands_.begin_while();
  commands_.test_while(Counter::is_below, &rounds);
  commands_.begin_fork(StrandBuilder::kNewStream);
  commands_.launch(Counter::bump, &there);
  commands_.record(event);
  commands_.end_fork();
  commands_.launch(Counter::bump, &here);
  commands_.wait(event);
  commands_.launch(Check::run, &check);
  commands_.launch(Counter::bump, &rounds);
  commands_.end_while();
  finish();
  run(false);
  EXPECT_EQ(num_wrong, 0);
  EXPECT_EQ(there.value, 2000);
}

TEST_P(StrandConformance, AFailureStopsAllStrandsAndReleasesTheirWaits) {
  const uint32_t never = commands_.add_event();
  Counter behind;
  commands_.begin_fork(StrandBuilder::kNewStream);
  commands_.wait(never);
  commands_.launch(Counter::bump, &behind);
  commands_.end_fork();
  commands_.launch([](void*) { return false; }, nullptr);
  commands_.launch(Counter::bump, &behind);
  finish();
  run(false);
  EXPECT_EQ(control_.stop, StopReason::kFailed);
  EXPECT_EQ(behind.value, 0);
}

TEST_P(StrandConformance, StoppingEndsAnEndlessLoop) {
  Counter counter{0, 1};
  commands_.begin_while();
  std::atomic<int> rounds = 0;
  commands_.test_while(
      [](void* rounds) {
        ++*static_cast<std::atomic<int>*>(rounds);
        return int32_t{1};
      },
      &rounds);
  commands_.launch(Counter::bump, &counter);
  commands_.end_while();
  finish();
  std::thread stopper([&] {
    while (rounds < 2) std::this_thread::yield();
    control_.request_stop(StopReason::kCancelled);
  });
  run(true);
  stopper.join();
  EXPECT_GT(counter.value, 0);
  EXPECT_FALSE(control_.request_stop(StopReason::kFailed)) << "the first reason wins";
  EXPECT_EQ(control_.stop, StopReason::kCancelled);
}

}  // namespace eddy::testing
