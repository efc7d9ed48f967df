// Claim: an idle thread spins a little and then sleeps; where it has to look at something that
// tasks wait for, it spins longer and then naps, ever longer; and until what it waits for is due it
// spins, unless another thread wants its processor, and never for long.
#include "runtime/coroutine/idle_pace.h"

#include <gtest/gtest.h>

#include <map>

namespace eddy {
namespace {

using Kind = IdlePace::Kind;
using Time = IdlePace::Time;
using Duration = IdlePace::Duration;
using namespace std::chrono_literals;

// The thread of a test: its clock moves by what it does.
class IdlePaceTest : public ::testing::Test {
 protected:
  static constexpr Duration kLook{500};  // a round of the loop that finds nothing

  Kind step() {
    seen_.now = now_;
    const IdlePace::Step step = pace_.next(seen_);
    ++num_[step.kind];
    if (step.kind == Kind::kNap) {
      EXPECT_GT(step.until, now_);
      longest_nap_ = std::max<Duration>(longest_nap_, step.until - now_);
      now_ = step.until;
    }
    now_ += kLook;
    return step.kind;
  }
  // How long it goes on before it does that for the first time.
  Duration until_first(Kind kind) {
    const Time began = now_;
    for (int i = 0; i < 1'000'000; ++i) {
      const Time before = now_;
      if (step() == kind) return before - began;
    }
    ADD_FAILURE() << "it never does";
    return {};
  }

  IdlePace pace_{{}};
  Time now_ = Time(1h);
  IdlePace::Seen seen_;
  std::map<Kind, int> num_;
  Duration longest_nap_{0};
};

TEST_F(IdlePaceTest, WithNothingToLookForItSpinsAMomentAndSleeps) {
  EXPECT_EQ(until_first(Kind::kSleep), 5us);
  pace_.end();
  EXPECT_EQ(until_first(Kind::kSleep), 5us);
  EXPECT_EQ(num_[Kind::kNap] + num_[Kind::kYield], 0);
}

TEST_F(IdlePaceTest, WhereTasksWaitItSpinsLongerAndNapsGrowToTheirLimit) {
  seen_ = {.is_polling = true, .has_tasks = true};
  EXPECT_EQ(until_first(Kind::kNap), 200us);
  EXPECT_EQ(longest_nap_, 2us);
  while (now_ < Time(1h) + 6ms) EXPECT_EQ(step(), Kind::kNap);
  EXPECT_EQ(longest_nap_, 100us);
  while (now_ < Time(1h) + 1s) EXPECT_EQ(step(), Kind::kNap);
  EXPECT_EQ(longest_nap_, 1ms);
  EXPECT_EQ(num_[Kind::kYield], 0);
}

TEST_F(IdlePaceTest, UntilWhatItWaitsForIsDueItDoesNotNap) {
  seen_ = {.is_polling = true, .has_tasks = true, .due = now_ + 4ms};
  const Duration spun = until_first(Kind::kNap);
  EXPECT_GE(spun, 4ms);
  EXPECT_LT(spun, 4ms + 2us);
  // Others are asked in its long part alone, a look in forty.
  EXPECT_NEAR(num_[Kind::kYield], 3.8ms / IdlePace::kYieldEvery, 3);
}

TEST_F(IdlePaceTest, OnceAnotherThreadHasTakenTheProcessorItNaps) {
  seen_ = {.is_polling = true, .has_tasks = true, .due = now_ + 4ms};
  EXPECT_LT(until_first(Kind::kYield), 200us + IdlePace::kYieldEvery);
  pace_.lose_turn();
  EXPECT_EQ(step(), Kind::kNap);
  while (now_ < Time(1h) + 4ms) EXPECT_EQ(step(), Kind::kNap);
  // The next idleness is another one.
  pace_.end();
  seen_.due = now_ + 4ms;
  EXPECT_LT(until_first(Kind::kYield), 200us + IdlePace::kYieldEvery);
  EXPECT_EQ(step(), Kind::kSpin);
}

TEST_F(IdlePaceTest, ItSpinsForNoLongTime) {
  seen_ = {.is_polling = true, .has_tasks = true, .due = now_ + 1h};
  const Duration spun = until_first(Kind::kNap);
  EXPECT_GE(spun, IdlePace::kLongestSpin);
  EXPECT_LT(spun, IdlePace::kLongestSpin + 2us);
}

TEST_F(IdlePaceTest, WhatIsDueIsNothingToAThreadWithNothingToLookForOrNoTasks) {
  seen_ = {.is_polling = false, .has_tasks = true, .due = now_ + 4ms};
  EXPECT_EQ(until_first(Kind::kSleep), 5us);
  pace_.end();
  seen_ = {.is_polling = true, .has_tasks = false, .due = now_ + 4ms};
  EXPECT_EQ(until_first(Kind::kNap), 5us);
}

}  // namespace
}  // namespace eddy
