// BitMatrix: a rectangle of bits, one row after the other in 64-bit words.
//
// Made for relations over dense ids: row u holds the nodes that u reaches. Bits past the last
// column are always 0, so rows can be compared and counted word by word.
//
// Memory: rows * ceil(columns / 64) * 8 bytes; the caller checks the size before it makes one.
// Cost: test, set O(1); or_row O(columns / 64).
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

class BitMatrix {
 public:
  BitMatrix(uint32_t rows, uint32_t columns)
      : rows_(rows),
        columns_(columns),
        words_per_row_((static_cast<size_t>(columns) + 63) / 64),
        words_(words_per_row_ * rows) {}

  uint32_t rows() const { return rows_; }
  uint32_t columns() const { return columns_; }

  std::span<uint64_t> row(uint32_t r) {
    EDDY_DCHECK(r < rows_) << "row " << r << " of " << rows_;
    return {words_.data() + r * words_per_row_, words_per_row_};
  }
  std::span<const uint64_t> row(uint32_t r) const {
    EDDY_DCHECK(r < rows_) << "row " << r << " of " << rows_;
    return {words_.data() + r * words_per_row_, words_per_row_};
  }

  bool test(uint32_t r, uint32_t c) const {
    EDDY_DCHECK(c < columns_) << "column " << c << " of " << columns_;
    return (row(r)[c / 64] >> (c % 64)) & 1;
  }
  void set(uint32_t r, uint32_t c) {
    EDDY_DCHECK(c < columns_) << "column " << c << " of " << columns_;
    row(r)[c / 64] |= uint64_t{1} << (c % 64);
  }

  // Row `to` becomes the union of itself and row `from`.
  void or_row(uint32_t to, uint32_t from) {
    std::span<uint64_t> target = row(to);
    std::span<const uint64_t> source = row(from);
    for (size_t i = 0; i < target.size(); ++i) target[i] |= source[i];
  }

  // Calls visit(column) for each set bit of the row, ascending.
  template <typename Visit>
  void for_each_in_row(uint32_t r, Visit visit) const {
    std::span<const uint64_t> words = row(r);
    for (size_t i = 0; i < words.size(); ++i) {
      for (uint64_t word = words[i]; word != 0; word &= word - 1) {
        const size_t column = i * 64 + static_cast<size_t>(std::countr_zero(word));
        EDDY_DCHECK(column < columns_) << "row " << r << " has a bit past its last column";
        visit(static_cast<uint32_t>(column));
      }
    }
  }

  bool operator==(const BitMatrix&) const = default;

 private:
  uint32_t rows_;
  uint32_t columns_;
  size_t words_per_row_;
  std::vector<uint64_t> words_;
};

}  // namespace eddy
