// Claim: a batch ends once it has taken its time by the clock; a command that was wrongly held to
// be cheap is found out within a few executions and is then run elsewhere, until it is timed anew;
// one slow execution among fast ones changes nothing.
#include "runtime/execute/host/inline_times.h"

#include <gtest/gtest.h>

namespace eddy {
namespace {

int64_t clock_ns = 0;
int num_reads = 0;

class InlineTimesTest : public ::testing::Test {
 protected:
  InlineTimesTest() { times_.resize(8); }
  static int64_t read_clock() {
    ++num_reads;
    return clock_ns;
  }
  // Runs it here. False: the batch is over.
  bool run(size_t command, int64_t ns) {
    times_.before(command);
    clock_ns += ns;
    return times_.after(command);
  }
  // In batches, all of its time short.
  void make_known(size_t command, int64_t ns) {
    for (int i = 0; i < InlineTimes::kTimings; ++i) {
      times_.begin_batch();
      run(command, ns);
    }
  }
  InlineTimes times_{read_clock};
};

TEST_F(InlineTimesTest, ABatchEndsInTime) {
  for (size_t command = 0; command < 8; ++command) make_known(command, 9'000);
  for (const int64_t ns : {9'000, 3'000, 500, 20}) {
    for (int batch = 0; batch < 20; ++batch) {
      times_.begin_batch();
      const int64_t began_ns = clock_ns;
      for (size_t i = 0; run(i % 8, ns); ++i) ASSERT_LT(i, 100'000u);
      if (batch < 10) continue;  // it is learning
      EXPECT_GE(clock_ns - began_ns, InlineTimes::kLongestNs);
      EXPECT_LT(clock_ns - began_ns, 2 * InlineTimes::kLongestNs) << ns;
    }
  }
}

TEST_F(InlineTimesTest, WhatIsNotCheapIsFoundOutAndTimedAnewLater) {
  int num_here = 0;
  for (int i = 0; i < 1000; ++i) {
    times_.begin_batch();
    if (times_.is_short(1)) {
      ++num_here;
      EXPECT_FALSE(run(1, 5'000'000)) << "nothing more in this batch";
    } else {
      times_.run_elsewhere(1);
    }
  }
  EXPECT_EQ(num_here, InlineTimes::kTimings);
  for (uint32_t i = 0; i < InlineTimes::kSlowUses; ++i) times_.run_elsewhere(1);
  EXPECT_TRUE(times_.is_short(1)) << "it may have become short";
  EXPECT_TRUE(times_.is_short(0));
}

TEST_F(InlineTimesTest, AKnownOneThatBecomesSlowIsFoundOut) {
  for (size_t command = 0; command < 8; ++command) make_known(command, 100);
  for (int i = 0; i < 10'000; ++i) {
    if (i % 500 == 0) times_.begin_batch();
    run(static_cast<size_t>(i % 8), 100);
  }
  int num_slow = 0;
  for (int i = 0; times_.is_short(3); ++i) {
    ASSERT_LT(i, 1000);
    times_.begin_batch();
    for (size_t command = 0; command < 8; ++command) {
      num_slow += command == 3 ? 1 : 0;
      if (!run(command, command == 3 ? 2'000'000 : 100)) break;
    }
    times_.end_batch();
  }
  EXPECT_LE(num_slow, 64 / 8 + 2 * InlineTimes::kTimings + 2);
  EXPECT_TRUE(times_.is_short(2));
}

TEST_F(InlineTimesTest, OneSlowExecutionChangesNothing) {
  times_.begin_batch();
  EXPECT_FALSE(run(1, 5'000'000)) << "the system has taken the thread away";
  make_known(1, 100);
  EXPECT_TRUE(times_.is_short(1));
}

TEST_F(InlineTimesTest, TheClockIsReadSeldomForShortCommands) {
  for (size_t command = 0; command < 8; ++command) make_known(command, 10);
  times_.begin_batch();
  for (int i = 0; i < 1000; ++i) run(static_cast<size_t>(i % 8), 10);
  num_reads = 0;
  for (int i = 0; i < 6400; ++i) run(static_cast<size_t>(i % 8), 10);
  EXPECT_LE(num_reads, 110);
}

}  // namespace
}  // namespace eddy
