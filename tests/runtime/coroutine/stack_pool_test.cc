// Claim: StackPool hands out usable stacks, each with a guard below it, recycles them, and
// answers resource_exhausted at its limit instead of giving less.
#include "runtime/coroutine/stack_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace eddy {
namespace {

// The access rights of the map that holds `address`, such as "rw-p"; empty if there is none.
std::string rights_at(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string rights;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> rights;
    if (begin <= wanted && wanted < end) return rights;
  }
  return "";
}

TEST(StackPool, AStackIsWritableFromEndToEndWithAGuardBelow) {
  StackPool pool({.stack_bytes = 64 * 1024});
  Stack stack = pool.acquire().value();
  EXPECT_EQ(stack.size_bytes, 64u * 1024);
  std::memset(stack.base, 0x5a, stack.size_bytes);
  EXPECT_EQ(rights_at(stack.base), "rw-p");
  EXPECT_EQ(rights_at(stack.top() - 1), "rw-p");
  EXPECT_EQ(rights_at(stack.base - 1), "---p");
  EXPECT_EQ(rights_at(stack.base - 4096), "---p");
  pool.release(stack);
}

TEST(StackPool, NeighboursKeepTheirGuards) {
  StackPool pool;
  std::vector<Stack> stacks;
  for (int i = 0; i < 50; ++i) stacks.push_back(pool.acquire().value());
  for (const Stack& stack : stacks) {
    EXPECT_EQ(rights_at(stack.base - 1), "---p");
    EXPECT_EQ(rights_at(stack.base), "rw-p");
  }
  for (const Stack& stack : stacks) pool.release(stack);
}

TEST(StackPoolDeathTest, WritingBelowAStackEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  StackPool pool;
  const Stack stack = pool.acquire().value();
  EXPECT_DEATH(*static_cast<volatile char*>(stack.base - 1) = 1, "");
  pool.release(stack);
}

TEST(StackPool, AReleasedStackIsTheNextOneHandedOut) {
  StackPool pool;
  const Stack first = pool.acquire().value();
  pool.release(first);
  EXPECT_EQ(pool.idle(), 1u);
  const Stack second = pool.acquire().value();
  EXPECT_EQ(first.base, second.base);
  EXPECT_EQ(pool.idle(), 0u);
  EXPECT_EQ(pool.live(), 1u);
  pool.release(second);
}

TEST(StackPool, IdleStacksBeyondTheLimitGoBackToTheKernel) {
  StackPool pool({.max_idle = 1});
  const Stack first = pool.acquire().value();
  const Stack second = pool.acquire().value();
  pool.release(first);
  pool.release(second);
  EXPECT_EQ(pool.idle(), 1u);
  EXPECT_EQ(rights_at(first.base), "rw-p");
  EXPECT_EQ(rights_at(second.base), "");
}

TEST(StackPool, TheLimitIsAnErrorAndReleasingHelps) {
  StackPool pool({.max_stacks = 2});
  const Stack first = pool.acquire().value();
  const Stack second = pool.acquire().value();
  const Result<Stack> third = pool.acquire();
  ASSERT_FALSE(third.is_ok());
  EXPECT_EQ(third.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(third.status().message().find("all 2"), std::string::npos);
  pool.release(first);
  const Stack again = pool.acquire().value();
  pool.release(again);
  pool.release(second);
}

TEST(StackPool, TheDefaultLimitIsBelowWhatTheKernelAllows) {
  std::size_t max_map_count = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> max_map_count;
  ASSERT_GT(max_map_count, 0u);
  StackPool pool;
  EXPECT_LE(pool.max_stacks(), max_map_count / 2);
  EXPECT_GT(pool.max_stacks(), 0u);
  StackPool greedy({.max_stacks = 100'000'000});
  EXPECT_LE(greedy.max_stacks(), max_map_count / 2);
}

// Takes every stack of two pools that each believe the process is theirs: the second must hit
// the kernel's limit, as an error, with a guard below every stack that it did give out.
TEST(StackPool, WhenTheKernelRefusesTheAnswerIsAnErrorNeverAnUnguardedStack) {
  const StackPoolOptions small{.stack_bytes = 16 * 1024};
  StackPool first(small);
  StackPool second(small);
  if (first.max_stacks() > 200'000) GTEST_SKIP() << "vm.max_map_count is too high to reach";
  std::vector<Stack> of_first, of_second;
  for (Result<Stack> stack = first.acquire(); stack.is_ok(); stack = first.acquire()) {
    of_first.push_back(*stack);
  }
  Status refusal;
  while (of_second.size() <= second.max_stacks()) {
    Result<Stack> stack = second.acquire();
    if (!stack.is_ok()) {
      refusal = stack.take_status();
      break;
    }
    of_second.push_back(*stack);
  }
  const std::string last_guard = of_second.empty() ? "---p" : rights_at(of_second.back().base - 1);
  for (const Stack& stack : of_first) first.release(stack);
  for (const Stack& stack : of_second) second.release(stack);
  EXPECT_EQ(of_first.size(), first.max_stacks());
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refusal.message().find("vm.max_map_count"), std::string::npos) << refusal.message();
  EXPECT_EQ(last_guard, "---p");
}

}  // namespace
}  // namespace eddy
