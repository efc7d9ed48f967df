// Claim: a loop on a worker gives way to a waiting task after about a slice of time, however long
// its rounds are; and strands keep the order of their events, round by round and run by run,
// whatever was stopped before.
#include "runtime/cpu/cpu_strands.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include "tests/runtime/device/strand_builder.h"

namespace eddy {
namespace {

struct Loop {
  explicit Loop(WorkerPool& pool) {
    commands.begin_while();
    commands.test_while([](void* self) { return static_cast<Loop*>(self)->is_going() ? 1 : 0; },
                        this);
    commands.launch([](void* self) { return static_cast<Loop*>(self)->body(); }, this);
    commands.end_while();
    commands.finish();
    strands = std::make_unique<CpuStrands>(pool, commands.code(), commands.bindings());
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

  testing::StrandBuilder commands;
  std::unique_ptr<CpuStrands> strands;
  RunControl control;
  std::atomic<int> num_rounds{0};
  int limit = 0;
  std::chrono::microseconds round{0};
  const Loop* other_or_null = nullptr;
  int seen = -1;  // of the other's rounds, in one's own first one
  std::atomic<bool> is_done{false};
};

TEST(CpuStrandsTest, ALoopOfSlowRoundsGivesWayAfterOneOfThem) {
  WorkerPool pool(1);
  Loop first(pool);
  Loop second(pool);
  first.limit = second.limit = 40;
  first.round = second.round = std::chrono::milliseconds(2);
  second.other_or_null = &first;
  first.strands->start(first.control);
  while (first.num_rounds == 0) std::this_thread::yield();
  second.strands->start(second.control);
  const int at_start = first.num_rounds;
  while (!first.is_done || !second.is_done) std::this_thread::yield();
  // The round in progress, and the one that may have begun before the other was queued.
  EXPECT_LE(second.seen, at_start + 2);
  EXPECT_EQ(second.num_rounds, 40);
}

TEST(CpuStrandsTest, ALoopOfShortRoundsGivesWayBeforeItEnds) {
  WorkerPool pool(1);
  Loop first(pool);
  Loop second(pool);
  first.limit = 200'000'000;
  second.limit = 1;
  second.other_or_null = &first;
  first.strands->start(first.control);
  second.strands->start(second.control);
  while (!second.is_done) std::this_thread::yield();
  EXPECT_LT(second.seen, first.limit);
  first.control.request_stop(StopReason::kCancelled);
  while (!first.is_done) std::this_thread::yield();
}

// Strands of random shape: each writes the round into its cells, waits for strands before it, and
// looks whether what they recorded is there.
class RandomStrands {
 public:
  RandomStrands(uint64_t seed, WorkerPool& pool) : random_(seed) {
    num_forks_ = 1 + random_() % 5;
    num_rounds_ = 1 + static_cast<int>(random_() % 30);
    builder_.launch([](void* self) { return static_cast<RandomStrands*>(self)->begin(); }, this);
    builder_.begin_while();
    builder_.test_while([](void* self) { return static_cast<RandomStrands*>(self)->test(); }, this);
    for (size_t f = 0; f < num_forks_; ++f) {
      builder_.begin_fork(static_cast<uint32_t>(f) + 1);
      work_and_record();
      builder_.end_fork();
      if (random_() % 2 == 0) work_and_record();
    }
    for (const Cell& cell : cells_) look(cell);
    builder_.launch([](void* self) { return static_cast<RandomStrands*>(self)->advance(); }, this);
    builder_.end_while();
    builder_.finish();
    strands_ = std::make_unique<CpuStrands>(pool, builder_.code(), builder_.bindings());
    control_.on_complete = [](void* self) { static_cast<RandomStrands*>(self)->is_done_ = true; };
    control_.context = this;
  }

  // Stopped after about so many calls; 0: not.
  void run(int stop_after) {
    control_.stop = StopReason::kRunning;
    is_done_ = false;
    calls_left_ = stop_after;
    strands_->start(control_);
    while (!is_done_) std::this_thread::yield();
    if (control_.is_stopped()) {
      EXPECT_GT(stop_after, 0);
    } else {
      EXPECT_EQ(round_, num_rounds_);
    }
  }
  int num_wrong() const { return num_wrong_; }

 private:
  struct Cell {
    RandomStrands* owner;
    uint32_t event;
    int round = -1;  // no atomic: ThreadSanitizer sees a lost order
  };

  void count_call() {
    if (calls_left_ > 0 && --calls_left_ == 0) control_.request_stop(StopReason::kCancelled);
  }
  bool begin() {
    round_ = 0;
    for (Cell& cell : cells_) cell.round = -1;
    return true;
  }
  int32_t test() const { return round_ < num_rounds_ ? 1 : 0; }
  bool advance() {
    ++round_;
    return true;
  }
  // Waits for some cells that are written before, then writes one.
  void work_and_record() {
    const size_t num_before = cells_.size();
    for (size_t c = 0; c < num_before; ++c) {
      if (random_() % 3 == 0) look(cells_[c]);
    }
    Cell& cell = cells_.emplace_back(Cell{this, builder_.add_event()});
    builder_.launch(
        [](void* context) {
          Cell& self = *static_cast<Cell*>(context);
          self.owner->count_call();
          self.round = self.owner->round_;
          return true;
        },
        &cell);
    builder_.record(cell.event);
  }
  void look(const Cell& cell) {
    builder_.wait(cell.event);
    builder_.launch(
        [](void* context) {
          const Cell& self = *static_cast<const Cell*>(context);
          self.owner->count_call();
          if (self.round != self.owner->round_) ++self.owner->num_wrong_;
          return true;
        },
        const_cast<Cell*>(&cell));
  }

  std::mt19937_64 random_;
  testing::StrandBuilder builder_;
  std::deque<Cell> cells_;
  size_t num_forks_ = 0;
  int num_rounds_ = 0;
  int round_ = 0;
  std::atomic<int> calls_left_{0};
  std::atomic<int> num_wrong_{0};
  std::atomic<bool> is_done_{false};
  RunControl control_;
  std::unique_ptr<CpuStrands> strands_;  // goes first
};

TEST(CpuStrandsTest, RandomStrandsKeepTheirOrdersAlsoInRunsBehindStoppedOnes) {
  const char* const text = std::getenv("EDDY_TEST_SEED");
  const uint64_t first = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  WorkerPool pool(4);
  for (uint64_t seed = first; seed < first + 200; ++seed) {
    RandomStrands strands(seed, pool);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 12; ++i) strands.run(i % 3 == 1 ? 1 + static_cast<int>(random() % 200) : 0);
    ASSERT_EQ(strands.num_wrong(), 0) << "seed " << seed << ", EDDY_TEST_SEED=" << seed;
  }
}

}  // namespace
}  // namespace eddy
