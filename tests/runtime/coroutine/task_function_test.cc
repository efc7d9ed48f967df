// Claim: TaskFunction owns any closure, moves it, calls it and destroys it exactly once.
#include "runtime/coroutine/task_function.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace eddy {
namespace {

// Counts how many are alive.
struct Counted {
  explicit Counted(int& alive) : alive(&alive) { ++alive; }
  Counted(const Counted& other) : alive(other.alive) { ++*alive; }
  Counted(Counted&& other) noexcept : alive(other.alive) { ++*alive; }
  ~Counted() { --*alive; }
  int* alive;
};

TEST(TaskFunction, OwnsAClosureThatCannotBeCopied) {
  int result = 0;
  TaskFunction function = [value = std::make_unique<int>(7), &result] { result = *value; };
  TaskFunction moved = std::move(function);
  EXPECT_FALSE(function);
  moved();
  EXPECT_EQ(result, 7);
}

template <std::size_t kPadding>
void expect_one_destruction() {
  int alive = 0, calls = 0;
  {
    TaskFunction first = [counted = Counted(alive), padding = std::array<char, kPadding>{},
                          &calls] { calls += 1 + padding[0]; };
    TaskFunction second = std::move(first);
    TaskFunction third;
    third = std::move(second);
    EXPECT_EQ(alive, 1);
    third();
    third.reset();
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(third);
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(calls, 1);
}

TEST(TaskFunction, DestroysASmallClosureOnce) { expect_one_destruction<1>(); }
TEST(TaskFunction, DestroysALargeClosureOnce) { expect_one_destruction<200>(); }

TEST(TaskFunction, AssigningDestroysWhatWasHeld) {
  int alive = 0;
  TaskFunction function = [counted = Counted(alive)] {};
  function = [] {};
  EXPECT_EQ(alive, 0);
}

TEST(TaskFunctionDeathTest, CallingAnEmptyOneIsACheck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TaskFunction function;
  EXPECT_DEATH(function(), "empty TaskFunction");
}

}  // namespace
}  // namespace eddy
