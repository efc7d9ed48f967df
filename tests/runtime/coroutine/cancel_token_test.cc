// Claim: the first terminal state wins and stays; callbacks run once at most, and never once
// their CancelCallback is gone.
#include "runtime/coroutine/cancel_token.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/coroutine/completion.h"
#include "runtime/coroutine/scheduler.h"

namespace eddy {
namespace {

using namespace std::chrono_literals;

TEST(CancelToken, TheFirstTerminalStateWins) {
  CancelSource source;
  const CancelToken token = source.token();
  EXPECT_EQ(token.state(), CancelState::kRunning);
  EXPECT_TRUE(token.status().is_ok());
  EXPECT_EQ(*token.word(), 0u);
  EXPECT_TRUE(source.expire());
  EXPECT_FALSE(source.cancel());
  EXPECT_FALSE(source.expire());
  EXPECT_EQ(token.state(), CancelState::kDeadlinePassed);
  EXPECT_EQ(*token.word(), 2u);
  EXPECT_EQ(token.status().code(), StatusCode::kDeadlineExceeded);
}

TEST(CancelToken, CancelledIsOne) {
  CancelSource source;
  EXPECT_TRUE(source.cancel());
  EXPECT_EQ(*source.token().word(), 1u);
  EXPECT_EQ(source.token().status().code(), StatusCode::kCancelled);
}

TEST(CancelToken, ADefaultTokenIsNeverCancelled) {
  const CancelToken token;
  EXPECT_FALSE(token.is_cancelled());
  EXPECT_EQ(*token.word(), 0u);
  CancelCallback callback(token, [] { FAIL(); });
}

TEST(CancelToken, TheStateOutlivesItsSource) {
  CancelToken token;
  {
    CancelSource source;
    token = source.token();
    source.cancel();
  }
  EXPECT_TRUE(token.is_cancelled());
}

TEST(CancelToken, OfManyRacersExactlyOneWins) {
  for (int round = 0; round < 300; ++round) {
    CancelSource source;
    std::atomic<int> won{0}, called{0}, go{0};
    CancelCallback callback(source.token(), [&] { ++called; });
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        ++go;
        while (go < 4) std::this_thread::yield();
        won += i % 2 == 0 ? source.cancel() : source.expire();
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(won, 1);
    ASSERT_EQ(called, 1);
  }
}

TEST(CancelCallback, RunsAtOnceIfTheStateIsTerminal) {
  CancelSource source;
  source.cancel();
  bool called = false;
  CancelCallback callback(source.token(), [&] { called = true; });
  EXPECT_TRUE(called);
}

TEST(CancelCallback, DoesNotRunAfterItIsGone) {
  CancelSource source;
  int called = 0;
  CancelCallback first(source.token(), [&] { ++called; });
  {
    CancelCallback second(source.token(), [] { FAIL(); });
  }
  auto third = std::make_unique<CancelCallback>(source.token(), [&] { ++called; });
  CancelCallback fourth(source.token(), [&] { ++called; });
  third.reset();
  source.cancel();
  EXPECT_EQ(called, 2);
}

TEST(CancelCallback, MayDestroyItself) {
  CancelSource source;
  std::optional<CancelCallback> callback;
  bool called = false;
  callback.emplace(source.token(), [&] {
    callback.reset();
    called = true;
  });
  source.cancel();
  EXPECT_TRUE(called);
}

TEST(CancelCallback, MayDestroyAnotherThatHasNotRun) {
  CancelSource source;
  std::optional<CancelCallback> other, callback;
  int called = 0;
  // Whichever runs first removes the other.
  other.emplace(source.token(), [&] { ++called, callback.reset(); });
  callback.emplace(source.token(), [&] { ++called, other.reset(); });
  source.cancel();
  EXPECT_EQ(called, 1);
}

TEST(CancelCallback, TheDestructorWaitsForARunningCallback) {
  CancelSource source;
  Completion running;
  std::atomic<bool> returned{false};
  std::thread canceller;
  {
    CancelCallback callback(source.token(), [&] {
      running.notify();
      std::this_thread::sleep_for(10ms);
      returned = true;
    });
    canceller = std::thread([&] { source.cancel(); });
    running.wait();
  }
  EXPECT_TRUE(returned);
  canceller.join();
}

// Registration, cancellation and removal meet in every order; sanitizers see a late callback.
TEST(CancelCallback, RegistrationRacesWithCancellation) {
  std::atomic<CancelSource*> handed{nullptr};
  std::atomic<bool> stop{false};
  std::thread canceller([&] {
    while (!stop) {
      CancelSource* source = handed.exchange(nullptr);
      source != nullptr ? (void)source->cancel() : std::this_thread::yield();
    }
  });
  for (int round = 0; round < 2'000; ++round) {
    CancelSource source;
    handed = &source;
    for (int i = 0; i < round % 8; ++i) {
      auto calls = std::make_unique<int>(0);
      CancelCallback callback(source.token(), [&] { ++*calls; });
    }
    int calls = 0;
    CancelCallback last(source.token(), [&] { ++calls; });
    while (!source.token().is_cancelled()) std::this_thread::yield();
    // Cancelled, but cancel() may still be running callbacks; it holds what it needs.
  }
  stop = true;
  canceller.join();
}

TEST(CancelCallback, WakesASuspendedTask) {
  CancelSource source;
  Completion waiting;
  CancelState seen = CancelState::kRunning;
  {
    Scheduler scheduler;
    ASSERT_TRUE(scheduler
                    .spawn([&, token = source.token()] {
                      Completion done;  // nobody but the cancellation will notify it
                      CancelCallback wake(token, [&] { done.notify(); });
                      waiting.notify();
                      done.wait();
                      seen = token.state();
                    })
                    .is_ok());
    waiting.wait();
    source.cancel();
  }
  EXPECT_EQ(seen, CancelState::kCancelled);
}

TEST(CancelCallback, ADeadlineIsATimerThatExpiresTheSource) {
  Scheduler scheduler;
  CancelSource source;
  Completion ended;
  scheduler.run_at(Scheduler::Clock::now() + 5ms, [source]() mutable { source.expire(); });
  ASSERT_TRUE(scheduler
                  .spawn([&, token = source.token()] {
                    // A loop that polls the word, as a hot loop would.
                    while (token.word()->load(std::memory_order_relaxed) == 0) Scheduler::yield();
                    ended.notify();
                  })
                  .is_ok());
  ended.wait();
  EXPECT_EQ(source.token().state(), CancelState::kDeadlinePassed);
}

}  // namespace
}  // namespace eddy
