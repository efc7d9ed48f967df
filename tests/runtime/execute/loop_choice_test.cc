// Claim: a loop is tried both ways, the first try of each counts for nothing, and the way that took
// less time an iteration is taken from then on, by all threads.
#include "runtime/execute/loop_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace eddy {
namespace {

using ::testing::HasSubstr;
using Way = LoopChoice::Way;

// Tries until it is settled; each way takes its time an iteration, its first try a thousand times.
Way settle(LoopChoice& choice, int64_t device_ns, int64_t host_ns) {
  std::array<int, 2> times{};
  for (int i = 0; i < 2 * LoopChoice::kTries; ++i) {
    const LoopChoice::Advice advice = choice.next();
    EXPECT_TRUE(advice.is_try);
    EXPECT_FALSE(choice.is_settled());
    const bool is_first = times[static_cast<size_t>(advice.way)]++ == 0;
    const int64_t each_ns = advice.way == Way::kDevice ? device_ns : host_ns;
    const int64_t iterations = 10 + i;
    choice.report(advice.way, each_ns * iterations * (is_first ? 1000 : 1), iterations);
  }
  EXPECT_EQ(times[0], LoopChoice::kTries);
  EXPECT_EQ(times[1], LoopChoice::kTries);
  EXPECT_TRUE(choice.is_settled());
  EXPECT_FALSE(choice.next().is_try);
  return choice.next().way;
}

TEST(LoopChoice, TheFasterWayIsTaken) {
  LoopChoice device;
  EXPECT_EQ(settle(device, 4300, 8100), Way::kDevice);
  EXPECT_THAT(device.text(), HasSubstr("4.3 µs an iteration by the device, 8.1 by the host"));
  LoopChoice host;
  EXPECT_EQ(settle(host, 8000, 4000), Way::kHost);
}

TEST(LoopChoice, TheDeviceTakesATie) {
  LoopChoice choice;
  EXPECT_EQ(settle(choice, 5000, 5000), Way::kDevice);
}

TEST(LoopChoice, WhatIsSettledStays) {
  LoopChoice choice;
  ASSERT_EQ(settle(choice, 4000, 8000), Way::kDevice);
  for (int i = 0; i < 10; ++i) choice.report(Way::kHost, 1, 1);
  EXPECT_EQ(choice.next().way, Way::kDevice);
}

TEST(LoopChoice, ALoopWithoutIterationsCountsAsOne) {
  LoopChoice choice;
  for (int i = 0; i < LoopChoice::kTries; ++i) choice.report(Way::kDevice, 5000, 0);
  for (int i = 0; i < LoopChoice::kTries; ++i) choice.report(Way::kHost, 4000, 0);
  EXPECT_EQ(choice.next().way, Way::kHost);
}

TEST(LoopChoice, ManyThreadsSettleOnOneWay) {
  LoopChoice choice;
  std::vector<std::thread> threads;
  std::array<Way, 4> settled{};
  for (Way& way : settled) {
    threads.emplace_back([&choice, &way] {
      while (!choice.is_settled()) {
        const LoopChoice::Advice advice = choice.next();
        choice.report(advice.way, advice.way == Way::kDevice ? 100 : 200, 1);
      }
      way = choice.next().way;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Way way : settled) EXPECT_EQ(way, Way::kDevice);
}

}  // namespace
}  // namespace eddy
