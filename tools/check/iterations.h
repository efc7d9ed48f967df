// Iterations: the iteration numbers of the loops around a step, outermost first.
//
// A value type that is copied once for each step of a run: the usual depths need no memory of
// their own. Cost: O(depth).
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace eddy::check {

class Iterations {
 public:
  Iterations() = default;
  Iterations(std::span<const int64_t> numbers) : size_(numbers.size()) {
    if (size_ <= kInline) {
      std::copy(numbers.begin(), numbers.end(), few_.begin());
    } else {
      many_.assign(numbers.begin(), numbers.end());
    }
  }

  std::span<const int64_t> span() const {
    return {size_ <= kInline ? few_.data() : many_.data(), size_};
  }
  auto begin() const { return span().begin(); }
  auto end() const { return span().end(); }

  bool operator==(const Iterations& other) const { return std::ranges::equal(*this, other); }
  std::strong_ordering operator<=>(const Iterations& other) const {
    return std::lexicographical_compare_three_way(begin(), end(), other.begin(), other.end());
  }

 private:
  static constexpr size_t kInline = 6;

  size_t size_ = 0;
  std::array<int64_t, kInline> few_ = {};
  std::vector<int64_t> many_;  // all of them, when they are more
};

}  // namespace eddy::check
