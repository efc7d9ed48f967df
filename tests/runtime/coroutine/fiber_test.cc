// Claim: a fiber keeps its locals, its registers and its exceptions over every suspension, and a
// fiber never sees those of another.
#include "runtime/coroutine/fiber.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace eddy {
namespace {

// A fiber with a stack of its own and a lambda for a body.
class TestFiber {
 public:
  explicit TestFiber(std::function<void(TestFiber&)> body)
      : body_(std::move(body)), stack_(pool_.acquire().value()), fiber_(stack_, &enter, this) {}
  ~TestFiber() { pool_.release(stack_); }

  void resume() { fiber_.resume(); }
  void suspend() { fiber_.suspend(); }
  bool is_finished() const { return fiber_.is_finished(); }

 private:
  static void enter(void* self) {
    TestFiber* fiber = static_cast<TestFiber*>(self);
    fiber->body_(*fiber);
  }

  std::function<void(TestFiber&)> body_;
  StackPool pool_;
  Stack stack_;
  Fiber fiber_;
};

TEST(Fiber, RunsUpToEachSuspensionAndThenToItsEnd) {
  std::string trace;
  TestFiber fiber([&](TestFiber& self) {
    trace += "a";
    self.suspend();
    trace += "b";
    self.suspend();
    trace += "c";
  });
  EXPECT_EQ(trace, "");
  for (const char* expected : {"a", "ab", "abc"}) {
    EXPECT_FALSE(fiber.is_finished());
    fiber.resume();
    EXPECT_EQ(trace, expected);
  }
  EXPECT_TRUE(fiber.is_finished());
}

TEST(Fiber, AFiberThatNeverRanMayBeDestroyed) {
  TestFiber fiber([](TestFiber&) { FAIL(); });
}

TEST(Fiber, AFiberMayResumeAnother) {
  std::string trace;
  TestFiber inner([&](TestFiber& self) {
    trace += "1";
    self.suspend();
    trace += "2";
  });
  TestFiber outer([&](TestFiber& self) {
    inner.resume();
    trace += "a";
    self.suspend();
    inner.resume();
    trace += "b";
  });
  outer.resume();
  outer.resume();
  EXPECT_EQ(trace, "1a2b");
  EXPECT_TRUE(inner.is_finished() && outer.is_finished());
}

TEST(Fiber, TwoFibersSuspendedInsideCatchRethrowTheirOwnException) {
  std::vector<std::string> rethrown;
  const auto body = [&](const std::string& name) {
    return [&rethrown, name](TestFiber& self) {
      try {
        try {
          throw std::runtime_error(name);
        } catch (const std::exception&) {
          self.suspend();
          throw;
        }
      } catch (const std::exception& error) {
        rethrown.push_back(error.what());
      }
    };
  };
  TestFiber first(body("first"));
  TestFiber second(body("second"));
  first.resume();
  second.resume();
  first.resume();
  second.resume();
  EXPECT_EQ(rethrown, (std::vector<std::string>{"first", "second"}));
}

TEST(Fiber, TheResumersCaughtExceptionIsNotTheFibersAndComesBack) {
  TestFiber fiber([](TestFiber& self) {
    EXPECT_EQ(std::current_exception(), nullptr);
    self.suspend();
    EXPECT_EQ(std::current_exception(), nullptr);
  });
  fiber.resume();
  try {
    throw std::runtime_error("outer");
  } catch (...) {
    fiber.resume();
    EXPECT_THROW(throw, std::runtime_error);
  }
}

// Suspends while the stack is being unwound, so the count of uncaught exceptions is one.
TEST(Fiber, TheCountOfUncaughtExceptionsBelongsToTheFiber) {
  struct SuspendsWhenDestroyed {
    TestFiber& fiber;
    ~SuspendsWhenDestroyed() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      fiber.suspend();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  TestFiber fiber([](TestFiber& self) {
    try {
      SuspendsWhenDestroyed guard{self};
      throw std::runtime_error("unwinding");
    } catch (const std::exception&) {
    }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  });
  fiber.resume();
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  fiber.resume();
  EXPECT_TRUE(fiber.is_finished());
}

TEST(Fiber, ExceptionsCanBeThrownAndCaughtAThousandTimesWhileOthersRun) {
  int caught = 0;
  const auto body = [&](TestFiber& self) {
    for (int i = 0; i < 1000; ++i) {
      try {
        throw i;
      } catch (int value) {
        self.suspend();
        caught += value == i;
      }
    }
  };
  TestFiber first(body), second(body);
  while (!first.is_finished()) {
    first.resume();
    second.resume();
  }
  EXPECT_EQ(caught, 2000);
}

TEST(Fiber, TheRoundingModeStaysWithTheFiber) {
  TestFiber fiber([](TestFiber& self) {
    std::fesetround(FE_UPWARD);
    self.suspend();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
  });
  fiber.resume();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  fiber.resume();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

// Fills about `bytes` of stack, suspending at the bottom.
[[gnu::noinline]] int dig(TestFiber& self, int depth) {
  volatile char frame[512];
  for (char& byte : const_cast<char(&)[512]>(frame)) byte = static_cast<char>(depth);
  if (depth == 0) {
    self.suspend();
  } else if (dig(self, depth - 1) != depth - 1) {
    return -1;
  }
  return frame[0] == static_cast<char>(depth) && frame[511] == frame[0] ? depth : -1;
}

TEST(Fiber, DeepFramesSurviveAndAStackIsCleanForItsNextUser) {
  StackPool pool;
  for (int round = 0; round < 20; ++round) {
    int result = -1;
    TestFiber fiber([&](TestFiber& self) { result = dig(self, 100); });
    fiber.resume();
    fiber.resume();
    EXPECT_EQ(result, 100);
  }
}

TEST(Fiber, TenThousandFibersMayBeSuspendedAtOnce) {
  StackPool pool({.stack_bytes = 16 * 1024});
  struct Body {
    Fiber* fiber = nullptr;
    int steps = 0;
    static void enter(void* self) {
      Body* body = static_cast<Body*>(self);
      ++body->steps;
      body->fiber->suspend();
      ++body->steps;
    }
  };
  constexpr int kFibers = 10'000;
  std::vector<Body> bodies(kFibers);
  std::vector<Stack> stacks;
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (Body& body : bodies) {
    stacks.push_back(pool.acquire().value());
    fibers.push_back(std::make_unique<Fiber>(stacks.back(), &Body::enter, &body));
    body.fiber = fibers.back().get();
  }
  for (int step = 1; step <= 2; ++step) {
    for (auto& fiber : fibers) fiber->resume();
    for (const Body& body : bodies) EXPECT_EQ(body.steps, step);
  }
  fibers.clear();
  for (const Stack& stack : stacks) pool.release(stack);
}

TEST(FiberDeathTest, OverflowingAStackHitsTheGuard) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TestFiber fiber([](TestFiber& self) { dig(self, 1'000'000); });
  EXPECT_DEATH(fiber.resume(), "");
}

TEST(FiberDeathTest, ResumingAFinishedFiberIsACheck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TestFiber fiber([](TestFiber&) {});
  fiber.resume();
  EXPECT_DEATH(fiber.resume(), "only a new or suspended fiber");
}

}  // namespace
}  // namespace eddy
