// StreamBits: a set of the machine's streams, as a plan hands them from region to region.
//
// One bit for each stream, as thousands of loops side by side each stand beside all others.
// Cost: insert and contains O(1); all else O(highest stream / 64).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace eddy {

class StreamBits {
 public:
  void insert(uint32_t stream) {
    if (stream / 64 >= words_.size()) words_.resize(stream / 64 + size_t{1});
    words_[stream / 64] |= uint64_t{1} << (stream % 64);
  }
  void insert(const StreamBits& others) {
    if (others.words_.size() > words_.size()) words_.resize(others.words_.size());
    for (size_t w = 0; w < others.words_.size(); ++w) words_[w] |= others.words_[w];
  }
  bool contains(uint32_t stream) const {
    return stream / 64 < words_.size() && (words_[stream / 64] >> (stream % 64) & 1) != 0;
  }
  size_t size() const {
    size_t count = 0;
    for (const uint64_t word : words_) count += static_cast<size_t>(std::popcount(word));
    return count;
  }

  // Calls visit(stream), ascending.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t rest = words_[w]; rest != 0; rest &= rest - 1) {
        visit(static_cast<uint32_t>(64 * w) + static_cast<uint32_t>(std::countr_zero(rest)));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace eddy
