// TileRanges: which tiles of one call each of its threads takes.
//
//   0 1 2 3 | 4 5 6 7 | 8 9 10 11      a range for each thread, first come by where it belongs;
//                                      a thread at the end of its own takes what others have left
//
// Neighbouring tiles mostly read and write neighbouring memory, and so do those of the next call at
// the same part of its line: a thread that has the same range each time finds that memory in its
// own caches.
//
// Contract: each tile is taken once. Tiles that wait for others in the order of their numbers have
// one range. Threads: any. Memory order: none; what tiles write, their caller orders. Cost: an
// atomic operation a tile, and a look at each range at the end.
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

  TileRanges(uint32_t num_tiles, uint32_t wanted_ranges)
      : num_tiles_(num_tiles), num_ranges_(std::clamp(wanted_ranges, 1u, kMost)) {
    for (uint32_t i = 0; i < num_ranges_; ++i) ranges_[i].next = begin(i);
  }

  uint32_t num_tiles() const { return num_tiles_; }

  // A range for a thread: that of its number, or the next one that no thread has.
  uint32_t join(uint32_t thread) {
    for (uint32_t i = 0; i < num_ranges_; ++i) {
      const uint32_t range = (thread + i) % num_ranges_;
      if (!ranges_[range].has_thread.exchange(true, std::memory_order_relaxed)) return range;
    }
    return thread % num_ranges_;
  }

  // The next tile, of `range` if it has any left, which else becomes the one that has;
  // num_tiles(): no tile is left.
  uint32_t take(uint32_t& range) {
    EDDY_DCHECK(range < num_ranges_) << range << " of " << num_ranges_;
    for (uint32_t i = 0; i < num_ranges_; ++i) {
      const uint32_t at = (range + i) % num_ranges_, end = begin(at + 1);
      std::atomic<uint32_t>& next = ranges_[at].next;
      if (next.load(std::memory_order_relaxed) >= end) continue;
      const uint32_t tile = next.fetch_add(1, std::memory_order_relaxed);
      if (tile >= end) continue;
      range = at;
      return tile;
    }
    return num_tiles_;
  }

  // How many are left to take. A hint.
  uint32_t num_left() const {
    uint32_t left = 0;
    for (uint32_t i = 0; i < num_ranges_; ++i) {
      const uint32_t next = ranges_[i].next.load(std::memory_order_relaxed), end = begin(i + 1);
      left += next < end ? end - next : 0;
    }
    return left;
  }

 private:
  struct alignas(64) Range {
    std::atomic<uint32_t> next{0};  // beyond the range's end by at most one for each thread
    std::atomic<bool> has_thread{false};
  };

  uint32_t begin(uint32_t range) const {
    return static_cast<uint32_t>(uint64_t{num_tiles_} * range / num_ranges_);
  }

  const uint32_t num_tiles_, num_ranges_;
  std::array<Range, kMost> ranges_;
};

}  // namespace eddy
