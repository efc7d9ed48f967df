// BroadcastPlan: the fewest nested loops that visit a broadcast output and its inputs in order.
//
// Dimensions of 1 are dropped and neighbours that every operand walks alike are merged, so equal
// shapes become one row and `[8,1,64] + [64]` becomes one row of 64 repeated 8 times. The innermost
// loop is contiguous in the output; each input has stride 0 (repeated) or 1 in it.
//
// Cost: O(rank) to make, nothing allocated.
#pragma once

#include <array>
#include <cstdint>

#include "graph/base/check.h"
#include "graph/ir/types.h"

namespace eddy::cpu {

inline constexpr int kMaxBroadcastInputs = 3;

struct BroadcastPlan {
  int num_inputs = 0;
  int rank = 1;  // at least 1; the last dimension is the row
  std::array<int64_t, kMaxRank> dims{};
  // In elements, for each input.
  std::array<std::array<int64_t, kMaxRank>, kMaxBroadcastInputs> strides{};

  // Length of a row and an input's stride in it.
  int64_t row_count() const { return dims[static_cast<size_t>(rank - 1)]; }
  int64_t row_stride(int input) const {
    return strides[static_cast<size_t>(input)][static_cast<size_t>(rank - 1)];
  }
  int64_t num_rows() const {
    int64_t rows = row_count() == 0 ? 0 : 1;
    for (int axis = 0; axis + 1 < rank; ++axis) rows *= dims[static_cast<size_t>(axis)];
    return rows;
  }
  // Of the dimension around the rows, if there is one.
  int64_t rows_inside() const { return rank > 1 ? dims[static_cast<size_t>(rank - 2)] : 1; }
  int64_t stride_of_rows(int input) const {
    return rank > 1 ? strides[static_cast<size_t>(input)][static_cast<size_t>(rank - 2)] : 0;
  }
};

// The inputs broadcast to `output` (the schema has checked that).
BroadcastPlan plan_broadcast(const Dims& output, std::span<const Dims> inputs);

// Calls row(offsets, output_offset) for each of the rows [first, end); offsets[i] is where input
// i's row begins.
template <typename Row>
void for_rows(const BroadcastPlan& plan, int64_t first, int64_t end, Row row) {
  EDDY_DCHECK(first >= 0 && end <= plan.num_rows()) << "rows " << first << " to " << end;
  if (first >= end) return;  // a dimension may be 0
  std::array<int64_t, kMaxRank> index{};
  std::array<int64_t, kMaxBroadcastInputs> offsets{};
  const int outer_rank = plan.rank - 1;
  for (int64_t axis = outer_rank - 1, rest = first; axis >= 0; --axis) {
    const size_t a = static_cast<size_t>(axis);
    index[a] = rest % plan.dims[a];
    rest /= plan.dims[a];
    for (int i = 0; i < plan.num_inputs; ++i) {
      offsets[static_cast<size_t>(i)] += index[a] * plan.strides[static_cast<size_t>(i)][a];
    }
  }
  for (int64_t r = first; r < end; ++r) {
    row(offsets, r * plan.row_count());
    for (int axis = outer_rank - 1; axis >= 0; --axis) {
      const size_t a = static_cast<size_t>(axis);
      const bool wraps = ++index[a] == plan.dims[a];
      const int64_t steps = wraps ? 1 - plan.dims[a] : 1;
      for (int i = 0; i < plan.num_inputs; ++i) {
        offsets[static_cast<size_t>(i)] += steps * plan.strides[static_cast<size_t>(i)][a];
      }
      if (!wraps) break;
      index[a] = 0;
    }
  }
}
template <typename Row>
void for_each_row(const BroadcastPlan& plan, Row row) {
  for_rows(plan, 0, plan.num_rows(), row);
}

}  // namespace eddy::cpu
