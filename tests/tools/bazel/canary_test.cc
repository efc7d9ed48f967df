// Claim: each sanitizer build is alive. A planted error, one for each sanitizer, must end
// the process with that sanitizer's report.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <thread>

namespace eddy {
namespace {

#ifndef EDDY_SANITIZER
#define EDDY_SANITIZER ""
#endif

// "asan+ubsan" is both.
bool built_with(const std::string& sanitizer) {
  return std::string(EDDY_SANITIZER).find(sanitizer) != std::string::npos;
}

// Writes memory after its owner freed it, in a way that the compiler cannot foresee.
void use_after_free() {
  auto owner = std::make_unique<int>(1);
  int* borrowed = owner.get();
  asm volatile("" : "+r"(borrowed));
  owner.reset();
  *static_cast<volatile int*>(borrowed) = 2;
}

void overflow() {
  volatile int largest = std::numeric_limits<int>::max();
  largest = largest + 1;
}

// Two threads add to one plain int, many times so that they meet.
void race() {
  int shared = 0;
  volatile int* counter = &shared;
  auto add = [counter] {
    for (int i = 0; i < 100000; ++i) *counter = *counter + 1;
  };
  std::thread first(add);
  std::thread second(add);
  first.join();
  second.join();
}

TEST(Canary, AddressSanitizerEndsAUseAfterFree) {
  if (!built_with("asan")) GTEST_SKIP() << "needs the asan config";
  EXPECT_DEATH(use_after_free(), "heap-use-after-free");
}

TEST(Canary, UndefinedBehaviorSanitizerEndsAnOverflow) {
  if (!built_with("ubsan")) GTEST_SKIP() << "needs the ubsan config";
  EXPECT_DEATH(overflow(), "signed integer overflow");
}

TEST(Canary, ThreadSanitizerReportsARace) {
  if (!built_with("tsan")) GTEST_SKIP() << "needs the tsan config";
  // The report comes at once, the exit code at the end.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        race();
        std::exit(0);
      },
      testing::ExitedWithCode(66), "data race");
}

}  // namespace
}  // namespace eddy
