// Claim: a persistent loop reads `stop` over the bus in one iteration of eight, and ends within
// nine once it is stopped.
#include <gtest/gtest.h>

#include <functional>

#include "ops/cuda/compiled/persistent_inl.h"

namespace eddy::testing {
namespace {

// A body that does nothing but call the test when the loop asks whether it goes on, which is before
// `stop` is read.
struct Body {
  struct Memory {
    int64_t count;
  };
  struct Scratch {};
  static inline std::function<void(int64_t count)> ask;

  static void enter(const cuda::LoopParams&, const cuda::Block&, Memory&) {}
  static void before(const cuda::LoopParams&, const cuda::Block&, Memory&, Scratch&) {}
  static void after(const cuda::LoopParams&, const cuda::Block&, Memory&, Scratch&) {}
  static void advance(const cuda::LoopParams&, const cuda::Block&, Memory&) {}
  static void leave(const cuda::LoopParams&, const cuda::Block&, Memory&) {}
  static void count(Memory& memory, int64_t number) { memory.count = number; }
  static bool goes_on(const cuda::LoopParams&, const Memory& memory) {
    ask(memory.count);
    return true;
  }
};

// The iterations of a loop of at most 100.
int64_t iterations(volatile uint32_t& stop, std::function<void(int64_t)> ask) {
  Body::ask = std::move(ask);
  int64_t progress[2] = {-1, -1};
  cuda::LoopParams params{};
  params.limit = 100;
  params.stop = &stop;
  params.progress = progress;
  cuda::run_persistent_on_host<Body>(&params);
  EXPECT_EQ(progress[1], 1);
  return progress[0];
}

TEST(PersistentFrame, OneIterationOfEightLooks) {
  volatile uint32_t stop = 0;
  EXPECT_EQ(iterations(stop, [&](int64_t count) { stop = count % 8 == 0 ? 0 : 1; }), 100);
}

TEST(PersistentFrame, AStopEndsItWithinNine) {
  for (int64_t stopped_at = 0; stopped_at < 20; ++stopped_at) {
    volatile uint32_t stop = 0;
    const int64_t all = iterations(stop, [&](int64_t count) { stop = count >= stopped_at; });
    EXPECT_GE(all, stopped_at);
    EXPECT_LE(all, stopped_at + 9);
  }
}

TEST(PersistentFrame, WhatIsStoppedBeforeDoesNotBegin) {
  volatile uint32_t stop = 1;
  EXPECT_EQ(iterations(stop, [](int64_t) {}), 0);
}

}  // namespace
}  // namespace eddy::testing
