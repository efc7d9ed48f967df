// Claim: the destructors of a poller's objects may use the set, and so may the functions that
// return how late a poller may be: none of them runs where it would wait for its own lock. Of all
// pollers the one that may be least late counts.
#include "runtime/coroutine/poll_set.h"

#include <gtest/gtest.h>

#include <memory>

namespace eddy {
namespace {

using namespace std::chrono_literals;

// Adds a poller to the set as it goes.
struct AddsAsItGoes {
  PollSet& set;
  int& num_gone;
  // clang 14 makes no aggregate in parentheses.
  AddsAsItGoes(PollSet& where, int& counter) : set(where), num_gone(counter) {}
  ~AddsAsItGoes() {
    ++num_gone;
    set.add([] { return false; });
  }
};

TEST(PollSetTest, WhatARemovedPollerOwnsMayUseTheSet) {
  PollSet set;
  int num_gone = 0;
  const auto owner = [&] { return std::make_shared<AddsAsItGoes>(set, num_gone); };
  // A removal from outside; of either function.
  set.remove(set.add([kept = owner()] { return false; }));
  set.remove(set.add([] { return false; }, [kept = owner()] { return PollSet::kNow; }));
  EXPECT_EQ(num_gone, 2);
  // A removal from inside a pass.
  PollerId self{};
  self = set.add([&, kept = owner()] { return set.remove(self), true; });
  EXPECT_TRUE(set.poll());
  EXPECT_EQ(num_gone, 3);
  EXPECT_FALSE(set.poll());
}

TEST(PollSetTest, AskingHowLateAPollerMayBeMayChangeTheSet) {
  PollSet set;
  int num_gone = 0;
  PollerId self{};
  self = set.add([] { return true; },
                 [&, kept = std::make_shared<AddsAsItGoes>(set, num_gone)] {
                   set.remove(self);
                   set.add([] { return false; }, [] { return PollSet::Slack(); });
                   return PollSet::Slack();
                 });
  EXPECT_EQ(set.slack(), std::nullopt);
  EXPECT_EQ(num_gone, 1);
  EXPECT_EQ(set.slack(), PollSet::kNow) << "what the owner added says nothing: never late";
  EXPECT_FALSE(set.poll());
}

TEST(PollSetTest, TheLeastSlackOfAllPollersCountsAndEachIsAsked) {
  PollSet set;
  EXPECT_EQ(set.slack(), std::nullopt);
  int num_asked = 0;
  PollSet::Slack slacks[3];
  for (PollSet::Slack& slack : slacks) {
    set.add([] { return false; }, [&] { return ++num_asked, slack; });
  }
  EXPECT_EQ(set.slack(), std::nullopt);
  slacks[1] = 5ms;
  EXPECT_EQ(set.slack(), 5ms);
  slacks[2] = 2ms;
  EXPECT_EQ(set.slack(), 2ms);
  slacks[0] = PollSet::kNow;
  EXPECT_EQ(set.slack(), PollSet::kNow);
  EXPECT_EQ(num_asked, 12);
}

}  // namespace
}  // namespace eddy
