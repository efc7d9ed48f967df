// Claim: a loop on a worker gives way to whoever waits for one after about a slice of time, however
// long its rounds are.
#include "runtime/cpu/cpu_command_buffer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace eddy {
namespace {

struct Loop {
  explicit Loop(WorkerPool& pool) : commands(pool) {
    commands.begin_while();
    commands.test_while([](void* self) { return static_cast<Loop*>(self)->is_going() ? 1 : 0; },
                        this);
    commands.launch([](void* self) { return static_cast<Loop*>(self)->body(); }, this);
    commands.end_while();
    commands.finish();
    control.on_complete = [](void* self) { static_cast<Loop*>(self)->is_done = true; };
    control.context = this;
  }
  bool is_going() const { return num_rounds < limit; }
  bool body() {
    // Longer than a slice, by far.
    const auto end = std::chrono::steady_clock::now() + round;
    while (std::chrono::steady_clock::now() < end) continue;
    if (num_rounds == 0 && other_or_null != nullptr) seen = other_or_null->num_rounds;
    ++num_rounds;
    return true;
  }

  CpuCommandBuffer commands;
  RunControl control;
  std::atomic<int> num_rounds{0};
  int limit = 0;
  std::chrono::microseconds round{0};
  const Loop* other_or_null = nullptr;
  int seen = -1;  // of the other's rounds, in one's own first one
  std::atomic<bool> is_done{false};
};

TEST(CpuCommandBufferTest, ALoopOfSlowRoundsGivesWayAfterOneOfThem) {
  WorkerPool pool(1);
  Loop first(pool);
  Loop second(pool);
  first.limit = second.limit = 40;
  first.round = second.round = std::chrono::milliseconds(2);
  second.other_or_null = &first;
  first.commands.start(first.control);
  while (first.num_rounds == 0) std::this_thread::yield();
  second.commands.start(second.control);
  const int at_start = first.num_rounds;
  while (!first.is_done || !second.is_done) std::this_thread::yield();
  // The round in progress, and the one that may have begun before the other was queued.
  EXPECT_LE(second.seen, at_start + 2);
  EXPECT_EQ(second.num_rounds, 40);
}

TEST(CpuCommandBufferTest, ALoopOfShortRoundsGivesWayBeforeItEnds) {
  WorkerPool pool(1);
  Loop first(pool);
  Loop second(pool);
  first.limit = 200'000'000;
  second.limit = 1;
  second.other_or_null = &first;
  first.commands.start(first.control);
  second.commands.start(second.control);
  while (!second.is_done) std::this_thread::yield();
  EXPECT_LT(second.seen, first.limit);
  first.control.request_stop(StopReason::kCancelled);
  while (!first.is_done) std::this_thread::yield();
}

}  // namespace
}  // namespace eddy
