// Claim: what synchronizes a context and the captures that are open in it wait for each other, over
// all who share the context, and no longer than their patience.
#include "runtime/cuda/capture_turns.h"

#include <gtest/gtest.h>

#include <atomic>
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

TEST(CaptureTurns, NoneIsOpenWhileAnotherSynchronizes) {
  CaptureTurns turns;
  std::atomic<int> num_captures{0}, num_alone{0}, num_met{0};
  const auto capture = [&] {
    for (int i = 0; i < 2000; ++i) {
      turns.begin_capture();
      ++num_captures;
      num_met += num_alone;
      --num_captures;
      turns.end_capture();
    }
  };
  const auto synchronize = [&] {
    for (int i = 0; i < 2000; ++i) {
      const CaptureTurns::Alone alone(turns);
      ++num_alone;
      num_met += num_captures;
      --num_alone;
    }
  };
  std::thread threads[] = {std::thread(capture), std::thread(synchronize), std::thread(capture),
                           std::thread(synchronize)};
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_met, 0);
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
