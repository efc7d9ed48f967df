// Claim: a loop is tried in every way that it has, the first try of each counts for nothing, and
// the way that took least time an iteration is taken from then on, by all threads, until all ways
// are tried anew, later each time the result is the same; what is ruled out is neither tried nor
// taken.
#include "runtime/execute/loop_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace eddy {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using Way = LoopChoice::Way;

// What an iteration takes, by way.
using Times = std::array<int64_t, 4>;

// Tries until it is settled; each way's first try takes a thousand times as long.
Way settle(LoopChoice& choice, const Times& each_ns) {
  std::array<int, 4> times{};
  for (int i = 0; !choice.is_settled(); ++i) {
    const LoopChoice::Advice advice = choice.next();
    EXPECT_TRUE(advice.is_try);
    const auto way = static_cast<size_t>(advice.way);
    const int64_t iterations = 10 + i;
    choice.report(advice.way, each_ns[way] * iterations * (times[way]++ == 0 ? 1000 : 1),
                  iterations);
  }
  for (const int tries : times) EXPECT_TRUE(tries == 0 || tries == LoopChoice::kTries);
  EXPECT_FALSE(choice.next().is_try);
  return choice.next().way;
}

TEST(LoopChoice, TheFastestWayIsTaken) {
  LoopChoice recording({});
  EXPECT_EQ(settle(recording, {1, 4300, 1, 8100}), Way::kRecording) << "there is no kernel";
  EXPECT_THAT(recording.text(), HasSubstr("iteration: 4.3 by a recording, 8.1 by the host"));
  LoopChoice host({});
  EXPECT_EQ(settle(host, {1, 8000, 1, 4000}), Way::kHost);
  for (const Way way : {Way::kKernel, Way::kRecording, Way::kUnrolled, Way::kHost}) {
    Times times = {5000, 5000, 5000, 5000};
    times[static_cast<size_t>(way)] = 900;
    LoopChoice choice({.kernel = true, .unrolled = true});
    EXPECT_EQ(settle(choice, times), way);
  }
  LoopChoice kernel({.kernel = true});
  EXPECT_EQ(settle(kernel, {900, 4300, 1, 8100}), Way::kKernel);
  EXPECT_THAT(kernel.text(), HasSubstr("0.9 as one kernel, 4.3 by a recording, 8.1 by the host"));
  LoopChoice unrolled({.unrolled = true});
  EXPECT_EQ(settle(unrolled, {1, 4300, 2400, 8100}), Way::kUnrolled);
  EXPECT_THAT(unrolled.text(), HasSubstr("4.3 by a recording, 2.4 unrolled, 8.1 by the host"));
}

TEST(LoopChoice, TheDeviceTakesATie) {
  LoopChoice recording({});
  EXPECT_EQ(settle(recording, {1, 5000, 1, 5000}), Way::kRecording);
  LoopChoice kernel({.kernel = true});
  EXPECT_EQ(settle(kernel, {5000, 5000, 1, 5000}), Way::kKernel);
  LoopChoice unrolled({.unrolled = true});
  EXPECT_EQ(settle(unrolled, {1, 5000, 5000, 5000}), Way::kRecording);
}

TEST(LoopChoice, TheHostMustBeFasterByMoreThanItsMargin) {
  LoopChoice hardly({});
  EXPECT_EQ(settle(hardly, {1, 9000, 1, 8000}), Way::kRecording);
  LoopChoice clearly({});
  EXPECT_EQ(settle(clearly, {1, 9001, 1, 8000}), Way::kHost);
  LoopChoice among({.unrolled = true});
  EXPECT_EQ(settle(among, {1, 9900, 9001, 8000}), Way::kHost);
}

TEST(LoopChoice, WhatIsRuledOutIsNeitherTriedNorTaken) {
  LoopChoice choice({.kernel = true});
  choice.report(Way::kRecording, 1, 1);
  choice.rule_out(Way::kRecording, "it is too large");
  EXPECT_EQ(settle(choice, {4000, 1, 1, 8000}), Way::kKernel);
  EXPECT_THAT(choice.text(),
              EndsWith("4.0 as one kernel, 8.0 by the host; not by a recording: it is too large"));
  LoopChoice last({});
  for (int i = 0; i < LoopChoice::kTries; ++i) last.report(Way::kHost, 1, 1);
  EXPECT_FALSE(last.is_settled());
  last.rule_out(Way::kRecording, "");
  EXPECT_TRUE(last.is_settled());
  EXPECT_EQ(last.next().way, Way::kHost);
}

TEST(LoopChoice, WhatIsSettledStays) {
  LoopChoice choice({});
  ASSERT_EQ(settle(choice, {1, 4000, 1, 8000}), Way::kRecording);
  for (int i = 0; i < 10; ++i) choice.report(Way::kHost, 1, 1);
  choice.rule_out(Way::kRecording, "it is too large");
  EXPECT_EQ(choice.next().way, Way::kRecording);
}

// How often the choice is used before it is open again.
int64_t uses_until_open(LoopChoice& choice) {
  int64_t uses = 0;
  while (!choice.next().is_try) ++uses;
  return uses;
}

TEST(LoopChoice, ALoopLeavesABadWayWhenAllAreTriedAnew) {
  LoopChoice choice({.kernel = true});
  // The recording was slowed down by others while it was timed.
  ASSERT_EQ(settle(choice, {9200, 9500, 1, 8100}), Way::kHost);
  EXPECT_LE(uses_until_open(choice), LoopChoice::kFirstHold);
  EXPECT_FALSE(choice.is_settled());
  EXPECT_THAT(choice.text(), HasSubstr("8.1 by the host")) << "what was settled last";
  EXPECT_EQ(settle(choice, {9000, 4300, 1, 8100}), Way::kRecording);
  EXPECT_THAT(choice.text(), HasSubstr("4.3 by a recording"));
}

TEST(LoopChoice, WhatStaysTheSameIsTriedLessAndLessOften) {
  LoopChoice choice({});
  int64_t expected = LoopChoice::kFirstHold;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(settle(choice, {1, 4000, 1, 8000}), Way::kRecording);
    EXPECT_NEAR(static_cast<double>(uses_until_open(choice)), static_cast<double>(expected), 2);
    expected *= 2;
  }
  ASSERT_EQ(settle(choice, {1, 8000, 1, 4000}), Way::kHost);
  EXPECT_LE(uses_until_open(choice), LoopChoice::kFirstHold) << "it has changed";
}

TEST(LoopChoice, TheOnlyWayIsNotTriedAnew) {
  LoopChoice choice({});
  choice.rule_out(Way::kRecording, "it is too large");
  ASSERT_EQ(settle(choice, {1, 1, 1, 8000}), Way::kHost);
  for (int64_t i = 0; i < 4 * LoopChoice::kFirstHold; ++i) ASSERT_FALSE(choice.next().is_try);
}

TEST(LoopChoice, ALoopWithoutIterationsCountsAsOne) {
  LoopChoice choice({});
  for (int i = 0; i < LoopChoice::kTries; ++i) choice.report(Way::kRecording, 5000, 0);
  for (int i = 0; i < LoopChoice::kTries; ++i) choice.report(Way::kHost, 4000, 0);
  EXPECT_EQ(choice.next().way, Way::kHost);
}

TEST(LoopChoice, ManyThreadsSettleOnOneWay) {
  LoopChoice choice({.kernel = true});
  std::vector<std::thread> threads;
  std::array<Way, 4> settled{};
  for (Way& way : settled) {
    threads.emplace_back([&choice, &way] {
      while (!choice.is_settled()) {
        const LoopChoice::Advice advice = choice.next();
        choice.report(advice.way, advice.way == Way::kRecording ? 100 : 200, 1);
      }
      way = choice.next().way;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Way way : settled) EXPECT_EQ(way, Way::kRecording);
}

}  // namespace
}  // namespace eddy
