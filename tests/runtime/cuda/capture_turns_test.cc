// Claim: what synchronizes a context and the captures that are open in it wait for each other, over
// all who share the context, and no longer than their patience.
#include "runtime/cuda/capture_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

namespace eddy {
namespace {

using Clock = std::chrono::steady_clock;

TEST(CaptureTurns, AreThoseOfTheContextWhileAnybodyHasThem) {
  const auto one = reinterpret_cast<CuContext>(uintptr_t{0x5000});
  const auto other = reinterpret_cast<CuContext>(uintptr_t{0x6000});
  const auto turns = CaptureTurns::of(one);
  EXPECT_EQ(CaptureTurns::of(one), turns);
  EXPECT_NE(CaptureTurns::of(other), turns);
}

// Whether `enter` waits for `leave`. A thread that gets no processor for so long shows nothing.
void expect_turns(const std::function<void()>& enter, const std::function<void()>& leave) {
  std::atomic<bool> has_entered{false};
  const Clock::time_point begin = Clock::now();
  std::thread other([&] {
    enter();
    has_entered = true;
  });
  while (!has_entered && Clock::now() - begin < CaptureTurns::kPatience / 20) {
    std::this_thread::yield();
  }
  const bool has_waited = !has_entered;
  const bool is_early = Clock::now() - begin < CaptureTurns::kPatience;
  EXPECT_TRUE(has_waited || !is_early);
  leave();
  other.join();
}

TEST(CaptureTurns, NoneIsOpenWhileAnotherSynchronizes) {
  CaptureTurns turns;
  std::optional<CaptureTurns::Alone> alone;
  turns.begin_capture();
  expect_turns([&] { alone.emplace(turns); }, [&] { turns.end_capture(); });
  expect_turns([&] { turns.begin_capture(); }, [&] { alone.reset(); });
  turns.end_capture();
}

TEST(CaptureTurns, CapturesGoOnBesideEachOther) {
  CaptureTurns turns;
  const Clock::time_point begin = Clock::now();
  turns.begin_capture();
  turns.begin_capture();
  turns.end_capture();
  turns.end_capture();
  const CaptureTurns::Alone alone(turns), another(turns);
  EXPECT_LT(Clock::now() - begin, CaptureTurns::kPatience);
}

// A capture that waits, through a stream, for the one that it holds up.
TEST(CaptureTurns, NobodyWaitsForever) {
  CaptureTurns turns;
  turns.begin_capture();
  const Clock::time_point begin = Clock::now();
  {
    const CaptureTurns::Alone alone(turns);
    EXPECT_GE(Clock::now() - begin, CaptureTurns::kPatience);
    turns.begin_capture();
    EXPECT_GE(Clock::now() - begin, 2 * CaptureTurns::kPatience);
  }
  turns.end_capture();
  turns.end_capture();
}

}  // namespace
}  // namespace eddy
