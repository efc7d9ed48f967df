#include "ops/schema/eddy/exchange.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "graph/base/check.h"
#include "graph/ir/types.h"

namespace eddy {
namespace {

int64_t end_of(const Box& box, size_t axis) { return box.starts[axis] + box.sizes[axis]; }

// None: they share no element.
std::optional<Box> intersect(const Box& a, const Box& b) {
  Box both = a;
  for (size_t axis = 0; axis < a.starts.size(); ++axis) {
    const int64_t start = std::max(a.starts[axis], b.starts[axis]);
    const int64_t end = std::min(end_of(a, axis), end_of(b, axis));
    if (start >= end) return std::nullopt;
    both.starts[axis] = start;
    both.sizes[axis] = end - start;
  }
  return both;
}

// What is left of `box` without `hole`, which lies in it: up to two boxes along each axis.
void subtract(Box box, const Box& hole, std::vector<Box>& rest) {
  for (size_t axis = 0; axis < box.starts.size(); ++axis) {
    const int64_t before = hole.starts[axis] - box.starts[axis];
    const int64_t behind = end_of(box, axis) - end_of(hole, axis);
    if (before > 0) {
      rest.push_back(box);
      rest.back().sizes[axis] = before;
    }
    if (behind > 0) {
      rest.push_back(box);
      rest.back().starts[axis] = end_of(hole, axis);
      rest.back().sizes[axis] = behind;
    }
    box.starts[axis] = hole.starts[axis];
    box.sizes[axis] = hole.sizes[axis];
  }
}

// What `target` lacks of `missing` and `source` has becomes pieces.
void take(std::span<const Box> from, size_t source, size_t target, std::vector<Box>& missing,
          std::vector<ExchangePiece>& pieces) {
  std::vector<Box> rest;
  for (Box& box : missing) {
    const std::optional<Box> both = intersect(box, from[source]);
    if (!both) {
      rest.push_back(std::move(box));
      continue;
    }
    pieces.push_back({source, target, *both});
    subtract(std::move(box), *both, rest);
  }
  missing = std::move(rest);
}

// Elements from the start of the dense box to where `at` begins.
int64_t offset_of(const Box& box, const Box& at) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < box.starts.size(); ++axis) {
    offset = offset * box.sizes[axis] + at.starts[axis] - box.starts[axis];
  }
  return offset;
}

}  // namespace

int64_t count_of(const Box& box) {
  int64_t count = 1;
  for (const int64_t size : box.sizes) count *= size;
  return count;
}

std::string to_string(const Box& box) {
  std::string text;
  for (size_t axis = 0; axis < box.starts.size(); ++axis) {
    text += (text.empty() ? "" : ", ") + std::to_string(box.starts[axis]) + ":" +
            std::to_string(end_of(box, axis));
  }
  return "[" + text + "]";
}

Result<std::vector<Box>> read_boxes(std::string_view attribute, std::span<const int64_t> numbers,
                                    size_t num_places) {
  const std::string name = "attribute '" + std::string(attribute) + "'";
  const bool is_even =
      num_places > 0 && numbers.size() % 2 == 0 && numbers.size() / 2 % num_places == 0;
  const size_t rank = is_even ? numbers.size() / 2 / num_places : 0;
  if (rank == 0 || rank > kMaxRank) {
    return invalid_argument(name + " has " + std::to_string(numbers.size()) +
                            " numbers; it takes as many starts as sizes for each of " +
                            std::to_string(num_places) + " ranks, of 1 to " +
                            std::to_string(kMaxRank) + " axes");
  }
  std::vector<Box> boxes;
  for (size_t place = 0; place < num_places; ++place) {
    const auto starts = numbers.subspan(2 * place * rank, rank);
    const auto sizes = numbers.subspan((2 * place + 1) * rank, rank);
    int64_t count = 1;
    for (size_t axis = 0; axis < rank; ++axis) {
      int64_t end = 0;
      const bool is_box = starts[axis] >= 0 && sizes[axis] >= 0 &&
                          !__builtin_add_overflow(starts[axis], sizes[axis], &end) &&
                          !__builtin_mul_overflow(count, std::max<int64_t>(sizes[axis], 1), &count);
      if (is_box) continue;
      return invalid_argument(name + ": of place " + std::to_string(place) + ", axis " +
                              std::to_string(axis) + " starts at " + std::to_string(starts[axis]) +
                              " with a size of " + std::to_string(sizes[axis]) +
                              "; both count from 0, and must be of a size that memory has");
    }
    boxes.push_back({{starts.begin(), starts.end()}, {sizes.begin(), sizes.end()}});
  }
  return boxes;
}

Result<std::vector<ExchangePiece>> exchange_pieces(std::span<const Box> from,
                                                   std::span<const Box> to) {
  EDDY_CHECK(from.size() == to.size()) << from.size() << " boxes for " << to.size() << " places";
  std::vector<ExchangePiece> pieces;
  for (size_t target = 0; target < to.size(); ++target) {
    if (count_of(to[target]) == 0) continue;
    std::vector<Box> missing = {to[target]};
    take(from, target, target, missing, pieces);
    for (size_t source = 0; source < from.size() && !missing.empty(); ++source) {
      if (source != target) take(from, source, target, missing, pieces);
    }
    if (missing.empty()) continue;
    return invalid_argument("no rank has " + to_string(missing[0]) + ", which place " +
                            std::to_string(target) + " of the group wants (attribute 'to')");
  }
  return pieces;
}

void copy_box(const void* from, const Box& from_box, void* to, const Box& to_box, const Box& piece,
              size_t element_bytes) {
  const size_t rank = piece.sizes.size();
  const size_t run = (rank == 0 ? 1 : static_cast<size_t>(piece.sizes[rank - 1])) * element_bytes;
  Box at = piece;  // moves on row by row
  int64_t rows = run == 0 ? 0 : 1;
  for (size_t axis = 0; axis + 1 < rank; ++axis) rows *= piece.sizes[axis];
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(
        static_cast<std::byte*>(to) + static_cast<size_t>(offset_of(to_box, at)) * element_bytes,
        static_cast<const std::byte*>(from) +
            static_cast<size_t>(offset_of(from_box, at)) * element_bytes,
        run);
    for (size_t axis = std::max<size_t>(rank, 1) - 1; axis-- > 0;) {
      if (++at.starts[axis] < end_of(piece, axis)) break;
      at.starts[axis] = piece.starts[axis];
    }
  }
}

}  // namespace eddy
