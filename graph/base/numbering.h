// Numbering: numbers sparse keys 0, 1, ... in the order in which they are first looked up, so that
// what belongs to them can lie in a vector.
//
//   Numbering<uint32_t> streams;
//   uint32_t number = streams.of(stream);  // below streams.size()
//   streams.clear();                       // in O(1), and it keeps its memory
//
// Idea: an open hash table with linear probing, at most half full; an entry counts only in the
// round in which it was written. Keys are unsigned integers or pointers as such.
// Threads: one at a time. Cost: of() O(1) expected; 16 to 24 bytes an entry.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

template <typename Key>
class Numbering {
 public:
  void clear() {
    ++round_;
    size_ = 0;
  }
  uint32_t size() const { return size_; }

  uint32_t of(Key key) {
    EDDY_DCHECK(size_ < UINT32_MAX) << "more than 2^32 - 1 keys";
    if (2 * (size_t{size_} + 1) > entries_.size()) grow();
    EDDY_DCHECK(2 * (size_t{size_} + 1) <= entries_.size()) << "more than half is full";
    Entry& entry = find(key);
    if (entry.round != round_) entry = {key, size_++, round_};
    return entry.number;
  }

 private:
  struct Entry {
    Key key = 0;
    uint32_t number = 0;
    uint64_t round = 0;
  };
  // The key's entry, or the one that it would take.
  Entry& find(Key key) {
    EDDY_DCHECK(std::has_single_bit(entries_.size()) && size_ < entries_.size())
        << size_ << " keys in " << entries_.size() << " entries: a search may not end";
    const size_t mask = entries_.size() - 1;
    size_t at = (uint64_t{key} * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (entries_[at].round == round_ && entries_[at].key != key) at = (at + 1) & mask;
    return entries_[at];
  }
  void grow() {
    std::vector<Entry> old(std::max<size_t>(16, 2 * entries_.size()));
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.round == round_) find(entry.key) = entry;
    }
  }

  std::vector<Entry> entries_;  // a power of two
  uint32_t size_ = 0;
  uint64_t round_ = 1;
};

}  // namespace eddy
