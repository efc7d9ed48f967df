// Which axes a reduction reduces, and how a tensor is seen from one of its axes: read from a node
// alike by every kernel.
#pragma once

#include <cstdint>

#include "ops/contract/kernel.h"

namespace eddy {

// A node's reduction rule as its attributes define it, before shapes are known.
struct ReduceAxes {
  bool by_input = false;        // input 1 holds the axes
  bool no_op_if_empty = false;  // empty axes are none, not all: each element is a group of its own
  int num_attribute_axes = 0;
  int64_t attribute_axes[kMaxRank] = {};

  static Result<ReduceAxes> of(const KernelInit& init);
  // Bit mask of the axes to reduce for an input of `rank` dimensions; `axes` is input 1 or omitted.
  Result<uint32_t> mask(int rank, const TensorView& axes) const;
};

// A tensor as [outer, count, inner], worked along the middle.
struct AxisSplit {
  int64_t outer = 1;
  int64_t count = 1;
  int64_t inner = 1;
};
// Along one axis, which may be negative and must be in range (a scalar is [1, 1, 1]).
AxisSplit split_at_axis(std::span<const int64_t> dims, int64_t axis);
// Everything from `axis` on is the middle.
AxisSplit split_flattened(std::span<const int64_t> dims, int64_t axis);
// The split of a Softmax, LogSoftmax or Hardmax node of that version.
AxisSplit split_softmax(std::span<const int64_t> dims, int since_version, bool has_axis,
                        int64_t axis);

}  // namespace eddy
