// ReadyQueue: the queue of Algorithm 1: a four-way heap on one 128-bit key
// (ready, rank, slot), which is the whole entry.
//
// Made for the pattern "take one, then put what it released": the hole that take() leaves at the
// root is filled by the next put(), which saves a walk from leaf to root for most tasks.
//
// Cost: O(log4 size) a take; 16 bytes an entry. Threads: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

using ReadyKey = unsigned __int128;

inline ReadyKey ready_key(uint64_t time, uint32_t rank, uint32_t slot) {
  return static_cast<ReadyKey>(time) << 64 | static_cast<uint64_t>(rank) << 32 | slot;
}
inline uint32_t slot_of(ReadyKey key) { return static_cast<uint32_t>(key); }

class ReadyQueue {
 public:
  bool is_empty() const { return size() == 0; }
  size_t size() const { return entries_.size() - (has_hole_ ? 1 : 0); }
  void clear() {
    entries_.clear();
    has_hole_ = false;
  }

  void put(ReadyKey key) {
    if (has_hole_) {
      EDDY_DCHECK(!entries_.empty()) << "a hole in nothing";
      has_hole_ = false;
      sift_down(key);
      return;
    }
    size_t i = entries_.size();
    entries_.push_back(key);
    while (i > 0) {
      const size_t parent = (i - 1) / 4;
      if (entries_[parent] < key) break;
      entries_[i] = entries_[parent];
      i = parent;
    }
    entries_[i] = key;
  }

  // The smallest; the queue is not empty.
  ReadyKey top() {
    EDDY_DCHECK(!is_empty()) << "nothing is ready";
    fill_hole();
    return entries_[0];
  }
  ReadyKey take() {
    EDDY_DCHECK(!is_empty()) << "nothing is left to take";
    fill_hole();
    has_hole_ = true;
    return entries_[0];
  }
  // All of them, in no particular order; empty afterwards.
  template <typename Visit>
  void take_all(const Visit& visit) {
    fill_hole();
    for (const ReadyKey key : entries_) visit(key);
    entries_.clear();
  }

 private:
  void fill_hole() {
    if (!has_hole_) return;
    has_hole_ = false;
    const ReadyKey last = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) sift_down(last);
  }

  // Puts the key at the root and lets it sink.
  void sift_down(ReadyKey key) {
    ReadyKey* const heap = entries_.data();
    const size_t size = entries_.size();
    size_t i = 0;
    for (;;) {
      const size_t first = 4 * i + 1;
      if (first >= size) break;
      size_t least = first;
      if (first + 3 < size) {
        // Sums in place of branches: which child is least cannot be predicted.
        const size_t a = first + (heap[first + 1] < heap[first] ? 1u : 0u);
        const size_t b = first + 2 + (heap[first + 3] < heap[first + 2] ? 1u : 0u);
        least = a + (b - a) * (heap[b] < heap[a] ? 1u : 0u);
      } else {
        for (size_t child = first + 1; child < size; ++child) {
          if (heap[child] < heap[least]) least = child;
        }
      }
      if (key < heap[least]) break;
      heap[i] = heap[least];
      i = least;
    }
    heap[i] = key;
  }

  std::vector<ReadyKey> entries_;
  bool has_hole_ = false;  // the root was taken and not yet replaced
};

}  // namespace eddy
