// Claim: the destructors of a poller's objects may use the set, and so may the functions that
// return whether a poller is wanted: none of them runs where it would wait for its own lock.
#include "runtime/coroutine/poll_set.h"

#include <gtest/gtest.h>

#include <memory>

namespace eddy {
namespace {

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
  set.remove(set.add([] { return false; }, [kept = owner()] { return true; }));
  EXPECT_EQ(num_gone, 2);
  // A removal from inside a pass.
  PollerId self{};
  self = set.add([&, kept = owner()] { return set.remove(self), true; });
  EXPECT_TRUE(set.poll());
  EXPECT_EQ(num_gone, 3);
  EXPECT_FALSE(set.poll());
}

TEST(PollSetTest, AskingWhetherAPollerIsWantedMayChangeTheSet) {
  PollSet set;
  int num_gone = 0;
  PollerId self{};
  self = set.add([] { return true; },
                 [&, kept = std::make_shared<AddsAsItGoes>(set, num_gone)] {
                   set.remove(self);
                   set.add([] { return false; }, [] { return false; });
                   return false;
                 });
  EXPECT_FALSE(set.is_any_wanted());
  EXPECT_EQ(num_gone, 1);
  EXPECT_TRUE(set.is_any_wanted()) << "what the owner added says nothing, so it is wanted";
  EXPECT_FALSE(set.poll());
}

}  // namespace
}  // namespace eddy
