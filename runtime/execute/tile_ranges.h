// TileRanges: which tiles of one call each of its threads takes.
//
//   0 1 2 3 | 4 5 6 7 | 8 9 10 11      a range for each thread, first come by where it belongs;
//                                      a thread at the end of its own takes what others have left
//
// Neighbouring tiles mostly read and write neighbouring memory, and so do those of the next call at
// the same part of its line: a thread that has the same range each time finds that memory in its
// own caches. Tiles that follow others come in stages, in each of which a thread has the same part,
// and goes through it to and fro: 0 1 2 3, then 15 14 13 12. Where all of it is more than a cache
// holds, it finds there what it has read last.
//
// Contract: each tile is taken once, and one of a stage when all of the stage before are taken.
// Threads: any. Memory order: none; what tiles write, their caller orders. Cost: an atomic
// operation a tile, and a look at each range at the end of each stage.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "graph/base/check.h"

namespace eddy {

class TileRanges {
 public:
  static constexpr uint32_t kMost = 16;

  // Where a thread is.
  struct Place {
    uint32_t range = 0, stage = 0;
  };

  // `at_once`: tiles of a stage; the last one may have fewer.
  TileRanges(uint32_t num_tiles, uint32_t at_once, uint32_t wanted_ranges)
      : num_tiles_(num_tiles),
        at_once_(std::clamp(at_once, 1u, std::max(num_tiles, 1u))),
        num_stages_((num_tiles + at_once_ - 1) / at_once_),
        num_ranges_(std::clamp(wanted_ranges, 1u, kMost)) {}

  uint32_t num_tiles() const { return num_tiles_; }

  // A range for a thread: that of its number, or the next one that no thread has.
  Place join(uint32_t thread) {
    for (uint32_t i = 0; i < num_ranges_; ++i) {
      const uint32_t range = (thread + i) % num_ranges_;
      if (!ranges_[range].has_thread.exchange(true, std::memory_order_relaxed)) return {range, 0};
    }
    return {thread % num_ranges_, 0};
  }

  // The next tile, of the place's range if its stage has any left there. In a call of one stage a
  // thread stays in the range that it has come to. num_tiles(): no tile is left.
  uint32_t take(Place& place) {
    EDDY_DCHECK(place.range < num_ranges_) << place.range << " of " << num_ranges_;
    for (; place.stage < num_stages_; ++place.stage) {
      for (uint32_t i = 0; i < num_ranges_; ++i) {
        const uint32_t range = (place.range + i) % num_ranges_;
        const uint32_t tile = take_of(range, place.stage);
        if (tile == num_tiles_) continue;
        if (num_stages_ == 1) place.range = range;
        return tile;
      }
    }
    return num_tiles_;
  }

  // How many are left to take. A hint.
  uint32_t num_left() const {
    uint32_t taken = 0;
    for (uint32_t i = 0; i < num_ranges_; ++i) {
      taken += ranges_[i].num_taken.load(std::memory_order_relaxed);
    }
    return num_tiles_ - std::min(taken, num_tiles_);
  }

 private:
  struct alignas(64) Range {
    std::atomic<uint32_t> num_taken{0};  // of all stages, places beyond the last tile as well
    std::atomic<bool> has_thread{false};
  };

  // Within a stage.
  uint32_t begin(uint32_t range) const {
    return static_cast<uint32_t>(uint64_t{at_once_} * range / num_ranges_);
  }

  uint32_t take_of(uint32_t range, uint32_t stage) {
    const uint32_t first = begin(range), size = begin(range + 1) - first;
    std::atomic<uint32_t>& num_taken = ranges_[range].num_taken;
    uint32_t taken = num_taken.load(std::memory_order_relaxed);
    while (taken < (stage + 1) * size) {
      if (!num_taken.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed)) continue;
      EDDY_DCHECK(taken >= stage * size) << "a tile of a stage before " << stage;
      const uint32_t at = taken - stage * size;
      const uint32_t tile = stage * at_once_ + first + (stage % 2 == 0 ? at : size - 1 - at);
      if (tile < num_tiles_) return tile;
      ++taken;
    }
    return num_tiles_;
  }

  const uint32_t num_tiles_, at_once_, num_stages_, num_ranges_;
  std::array<Range, kMost> ranges_;
};

}  // namespace eddy
