// Claim: a loop that is stopped ends with the first test that looks: each one where no time of the
// last look is kept, else the first test of a graph and those 20 µs or more behind the last look; a
// test between them reads nothing over the bus, and what only counts never does.
#include "ops/cuda/images/loop_control.h"

#include <gtest/gtest.h>

namespace eddy::testing {
namespace {

using cuda::LoopStepParams;

struct Loop {
  int64_t counter = 0, limit = 1000, progress[2] = {0, 0};
  uint8_t predicate = 1;
  uint32_t stop = 0;
  uint64_t asked_ns = 77, time_ns = 5'000'000;
  bool keeps_time = true;
  uint32_t decision = 9;

  void step(uint32_t flags) {
    const LoopStepParams params{0,     &counter, &limit,  &predicate,
                                &stop, progress, nullptr, keeps_time ? &asked_ns : nullptr,
                                flags, 0};
    cuda::loop_step(
        params, [&](uint64_t, uint32_t value) { decision = value; }, [&] { return time_ns; });
  }
  void start() {
    step(LoopStepParams::kStart | LoopStepParams::kForget);
    step(LoopStepParams::kTest);
  }
  bool goes_on_after(uint64_t ns) {
    time_ns += ns;
    step(LoopStepParams::kAdvance | LoopStepParams::kTest);
    return decision != 0;
  }
};

TEST(LoopControl, TheFirstTestOfAGraphLooks) {
  Loop loop;
  loop.asked_ns = loop.time_ns;  // of the last launch
  loop.stop = 1;
  loop.start();
  EXPECT_EQ(loop.decision, 0u);
  EXPECT_EQ(loop.progress[1], 1);
}

TEST(LoopControl, AStopIsSeenOnceTheTimeIsOver) {
  Loop loop;
  loop.start();
  loop.stop = 1;
  EXPECT_TRUE(loop.goes_on_after(5'000));
  EXPECT_TRUE(loop.goes_on_after(14'999));
  EXPECT_FALSE(loop.goes_on_after(1));
  EXPECT_EQ(loop.counter, 2) << "a stopped iteration is not counted";
  EXPECT_EQ(loop.progress[0], 2);
}

TEST(LoopControl, BetweenLooksNothingIsRead) {
  Loop loop;
  loop.start();
  loop.stop = 1;  // seen by any look
  for (int i = 0; i < 19; ++i) ASSERT_TRUE(loop.goes_on_after(1'000)) << i;
  loop.stop = 0;
  EXPECT_TRUE(loop.goes_on_after(1'000)) << "that one looks";
  loop.stop = 1;
  for (int i = 0; i < 19; ++i) ASSERT_TRUE(loop.goes_on_after(1'000)) << i;
  EXPECT_FALSE(loop.goes_on_after(1'000));
}

TEST(LoopControl, WhatCountsAloneDoesNotLook) {
  Loop loop;
  loop.start();
  loop.stop = 1;
  loop.time_ns += 1'000'000;
  loop.step(LoopStepParams::kAdvance);
  EXPECT_EQ(loop.counter, 1);
  loop.step(LoopStepParams::kTest);
  EXPECT_EQ(loop.decision, 0u);
}

// Where kernels report faults, a loop ends with the iteration of the fault, uncounted.
TEST(LoopControl, WithoutATimeEachStepLooks) {
  Loop loop;
  loop.keeps_time = false;
  loop.step(LoopStepParams::kStart);
  loop.step(LoopStepParams::kTest);
  EXPECT_EQ(loop.decision, 1u);
  loop.stop = 1;
  loop.step(LoopStepParams::kAdvance);
  EXPECT_EQ(loop.counter, 0);
  EXPECT_FALSE(loop.goes_on_after(0));
}

}  // namespace
}  // namespace eddy::testing
