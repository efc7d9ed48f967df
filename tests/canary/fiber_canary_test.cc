// Claim: the sanitizers see through our stack switches. An error planted in a task, one for
// each kind, must end the process with that sanitizer's report; without the hooks around a
// switch some of these go unnoticed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include "runtime/coroutine/scheduler.h"
#include "tests/runtime/coroutine/wait_group.h"

namespace eddy {
namespace {

#ifndef EDDY_SANITIZER
#define EDDY_SANITIZER ""
#endif

// "asan+ubsan" is both.
#define REQUIRE_SANITIZER(name)                                      \
  if (std::string(EDDY_SANITIZER).find(name) == std::string::npos) { \
    GTEST_SKIP() << "needs the " name " config";                     \
  }                                                                  \
  static_assert(true)

// Runs `body` in a task that has been suspended once, and waits for its end.
template <typename Body>
void in_a_resumed_task(Body body) {
  Scheduler scheduler;
  EXPECT_TRUE(scheduler
                  .spawn([body] {
                    Scheduler::yield();
                    body();
                  })
                  .is_ok());
}

class FiberCanary : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(FiberCanary, AddressSanitizerEndsAUseAfterFreeInATask) {
  REQUIRE_SANITIZER("asan");
  EXPECT_DEATH(in_a_resumed_task([] {
                 auto owner = std::make_unique<int>(1);
                 int* borrowed = owner.get();
                 asm volatile("" : "+r"(borrowed));
                 owner.reset();
                 Scheduler::yield();
                 *static_cast<volatile int*>(borrowed) = 2;
               }),
               "heap-use-after-free");
}

TEST_F(FiberCanary, AddressSanitizerEndsAnOverflowOfALocalOnAFibersStack) {
  REQUIRE_SANITIZER("asan");
  EXPECT_DEATH(in_a_resumed_task([] {
                 char local[16] = {};
                 int index = 16;
                 char* start = local;
                 asm volatile("" : "+r"(start), "+r"(index));
                 Scheduler::yield();
                 start[index] = 1;
               }),
               "stack-buffer-overflow");
}

// A block with its only pointer on the stack of a destroyed fiber.
TEST_F(FiberCanary, LeakSanitizerReportsWhatATaskForgot) {
  REQUIRE_SANITIZER("asan");
  EXPECT_EXIT(
      {
        in_a_resumed_task([] {
          void* forgotten = std::malloc(1234);
          asm volatile("" : "+r"(forgotten));
          Scheduler::yield();
        });
        std::exit(0);
      },
      [](int status) { return status != 0; }, "1234 byte");
}

TEST_F(FiberCanary, UndefinedBehaviorSanitizerEndsAnOverflowInATask) {
  REQUIRE_SANITIZER("ubsan");
  EXPECT_DEATH(in_a_resumed_task([] {
                 volatile int largest = std::numeric_limits<int>::max();
                 largest = largest + 1;
               }),
               "signed integer overflow");
}

// A task and a thread add to one plain int with nothing to order them.
TEST_F(FiberCanary, ThreadSanitizerReportsARaceBetweenATaskAndAThread) {
  REQUIRE_SANITIZER("tsan");
  EXPECT_EXIT(
      {
        int shared = 0;
        volatile int* counter = &shared;
        std::thread other([counter] {
          for (int i = 0; i < 100'000; ++i) *counter = *counter + 1;
        });
        in_a_resumed_task([counter] {
          for (int i = 0; i < 100'000; ++i) {
            *counter = *counter + 1;
            if (i % 1000 == 0) Scheduler::yield();
          }
        });
        other.join();
        std::exit(0);
      },
      testing::ExitedWithCode(66), "data race");
}

// The other way round: what two tasks of one scheduler share needs no lock, and what a task
// wrote before done() is ordered. A report here would be a false one.
TEST_F(FiberCanary, NoSanitizerObjectsToTasksThatShareAndHandOver) {
  int shared = 0;
  WaitGroup group;
  group.add(2);
  Scheduler scheduler;
  for (int task = 0; task < 2; ++task) {
    ASSERT_TRUE(scheduler
                    .spawn([&] {
                      for (int i = 0; i < 1000; ++i) {
                        ++shared;
                        Scheduler::yield();
                      }
                      group.done();
                    })
                    .is_ok());
  }
  group.wait();
  EXPECT_EQ(shared, 2000);
}

}  // namespace
}  // namespace eddy
