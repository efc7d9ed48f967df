// StrandEvent: how often a point of a strand has been passed, and which strands wait for it.
//
// One word: the number of records above, below it the first of a list of strands that wait, or that
// all are released because the run has been stopped. Counts wrap, and are compared by difference.
//
//   record    counts, and takes the list: its strands are the recorder's, to be woken
//   wait      where the count is there, goes on; else the strand is on the list, and belongs to
//             the record that takes it from there: it must not be touched again
//
// A strand that is woken looks again: the list holds strands that wait for different rounds.
//
// Memory order: record releases what its strand did before; a wait acquires it, by seeing the count
// or by being woken. Threads: any. Errors: none.
#pragma once

#include <atomic>
#include <cstdint>

#include "graph/base/check.h"

namespace eddy {

class StrandEvent {
 public:
  static constexpr uint32_t kNobody = 0xffff'fffe;

  // Not beside anything else.
  void reset() { state_.store(kNobody, std::memory_order_relaxed); }
  uint32_t count() const { return count_of(state_.load(std::memory_order_acquire)); }

  bool is_reached(uint32_t count) const {
    return is_reached(state_.load(std::memory_order_acquire), count);
  }
  // False: the strand is on the list, behind what `next` is set to before.
  bool wait_or_park(uint32_t count, uint32_t strand, uint32_t& next) {
    EDDY_DCHECK(strand < kNobody) << "strand " << strand << " stands for none";
    uint64_t state = state_.load(std::memory_order_acquire);
    do {
      if (is_reached(state, count)) return true;
      next = list_of(state);
    } while (!state_.compare_exchange_weak(state, (state & ~uint64_t{kReleased}) | strand,
                                           std::memory_order_acq_rel, std::memory_order_acquire));
    return false;
  }
  // The first of those that waited, or kNobody.
  uint32_t record() {
    uint64_t state = state_.load(std::memory_order_relaxed);
    uint64_t next;
    do {
      const uint32_t list = list_of(state) == kReleased ? kReleased : kNobody;
      next = uint64_t{count_of(state) + 1} << 32 | list;
    } while (!state_.compare_exchange_weak(state, next, std::memory_order_acq_rel,
                                           std::memory_order_relaxed));
    return list_of(state) == kReleased ? kNobody : list_of(state);
  }
  // A record that wakes no strand: those that wait do so for later ones.
  void pass() { state_.fetch_add(uint64_t{1} << 32, std::memory_order_acq_rel); }
  // From now on no strand waits. Those that did.
  uint32_t release() {
    const uint64_t state = state_.fetch_or(kReleased, std::memory_order_acq_rel);
    return list_of(state) == kReleased ? kNobody : list_of(state);
  }

 private:
  static constexpr uint32_t kReleased = 0xffff'ffff;

  static_assert(kNobody < kReleased && (kNobody & kReleased) == kNobody,
                "to release is to set bits, whatever the list");
  static uint32_t count_of(uint64_t state) { return static_cast<uint32_t>(state >> 32); }
  static uint32_t list_of(uint64_t state) { return static_cast<uint32_t>(state); }
  static bool is_reached(uint64_t state, uint32_t count) {
    const auto ahead = static_cast<int32_t>(count_of(state) - count);
    return ahead >= 0 || list_of(state) == kReleased;
  }

  std::atomic<uint64_t> state_{kNobody};
};

}  // namespace eddy
