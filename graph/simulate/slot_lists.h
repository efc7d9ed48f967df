// SlotLists: many short lists of numbers in one pool, each growing and shrinking by itself.
//
// What a graph that is edited needs in place of compressed rows: assign() lays the lists out one
// behind the other, tight, as compressed rows would; append() moves a list that is full to a block
// of twice its size, and blocks left behind are kept by size class and used again. The order of a
// list's items means nothing: erase() puts the last item into the hole.
//
// A ListRef is the caller's: it stands in the record that owns the list, beside what is read with
// it. Cost: append O(1) amortised, erase O(length), memory at most twice the longest state.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

struct ListRef {
  uint32_t begin = 0;
  uint32_t size = 0;
  uint32_t capacity = 0;
};

class SlotLists {
 public:
  std::span<const uint32_t> items(const ListRef& list) const {
    EDDY_DCHECK(list.size <= list.capacity && size_t{list.begin} + list.size <= pool_.size())
        << list.size << " items from " << list.begin << " of " << pool_.size();
    return {pool_.data() + list.begin, list.size};
  }

  // Forgets every list; the pool becomes `size` items for the caller to cut into tight lists.
  std::span<uint32_t> assign(size_t size) {
    for (auto& blocks : free_blocks_) blocks.clear();
    pool_.resize(size);
    return pool_;
  }

  void append(ListRef& list, uint32_t item) {
    if (list.size == list.capacity) grow(list);
    EDDY_DCHECK(size_t{list.begin} + list.size < pool_.size()) << "a list of another pool";
    pool_[list.begin + list.size++] = item;
  }

  // Removes one occurrence; false where there is none. Looks from the end, where an edit that is
  // undone has put it.
  bool erase(ListRef& list, uint32_t item) {
    uint32_t* const first = pool_.data() + list.begin;
    uint32_t* const last = first + list.size;
    uint32_t* place = last;
    while (place != first) {
      if (*--place != item) continue;
      *place = *(last - 1);
      --list.size;
      return true;
    }
    return false;
  }

  // Gives the list's block back; the list is empty afterwards.
  void release(ListRef& list) {
    if (list.capacity > 0) free_blocks_[class_below(list.capacity)].push_back(list.begin);
    list = {};
  }

 private:
  static constexpr uint32_t kSmallest = 4;

  // The largest power of two that fits into a block: tight blocks lose their remainder.
  static uint32_t class_below(uint32_t capacity) {
    EDDY_DCHECK(capacity > 0) << "a list without a block has no class";
    return static_cast<uint32_t>(std::bit_width(capacity)) - 1;
  }

  void grow(ListRef& list) {
    const uint32_t capacity = std::max(kSmallest, std::bit_ceil(list.size + 1));
    ListRef grown{.begin = take_block(capacity), .size = list.size, .capacity = capacity};
    std::copy_n(pool_.data() + list.begin, list.size, pool_.data() + grown.begin);
    release(list);
    list = grown;
  }

  uint32_t take_block(uint32_t capacity) {
    std::vector<uint32_t>& blocks = free_blocks_[class_below(capacity)];
    if (!blocks.empty()) {
      const uint32_t begin = blocks.back();
      blocks.pop_back();
      return begin;
    }
    EDDY_CHECK(pool_.size() + capacity <= UINT32_MAX) << "more than 2^32 list items";
    const auto begin = static_cast<uint32_t>(pool_.size());
    pool_.resize(pool_.size() + capacity);
    return begin;
  }

  std::vector<uint32_t> pool_;
  std::array<std::vector<uint32_t>, 33> free_blocks_;  // by binary logarithm of the capacity
};

}  // namespace eddy
