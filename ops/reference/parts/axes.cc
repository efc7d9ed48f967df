#include "ops/reference/parts/axes.h"

#include <string>

#include "graph/base/check.h"

namespace eddy {

Result<ReduceAxes> ReduceAxes::of(const KernelInit& init) {
  ReduceAxes axes;
  axes.by_input = init.op.inputs.size() > 1;
  axes.no_op_if_empty = init.attributes.get_int("noop_with_empty_axes", 0) != 0;
  const std::span<const int64_t> given = init.attributes.get_ints("axes");
  if (given.size() > kMaxRank) {
    return invalid_argument("attribute 'axes' has " + std::to_string(given.size()) + " axes");
  }
  for (int64_t axis : given) axes.attribute_axes[axes.num_attribute_axes++] = axis;
  return axes;
}

Result<uint32_t> ReduceAxes::mask(int rank, const TensorView& axes) const {
  EDDY_DCHECK(rank >= 0 && rank <= kMaxRank) << "a rank of " << rank;
  const int64_t* given = attribute_axes;
  int64_t count = num_attribute_axes;
  if (by_input) {
    given = axes.is_omitted() ? nullptr : axes.as<int64_t>();
    count = axes.is_omitted() ? 0 : axes.count();
  }
  uint32_t mask = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t axis = given[i] < 0 ? given[i] + rank : given[i];
    if (axis < 0 || axis >= rank) {
      return invalid_argument("axis " + std::to_string(given[i]) + " is out of range for rank " +
                              std::to_string(rank));
    }
    mask |= 1u << axis;
  }
  if (count == 0 && !no_op_if_empty) mask = (1u << rank) - 1;
  return mask;
}

static_assert(kMaxRank < 32, "a mask has a bit for each axis");

AxisSplit split_at_axis(std::span<const int64_t> dims, int64_t axis) {
  AxisSplit split;
  const int64_t rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = dims[static_cast<size_t>(i)];
    (i < axis ? split.outer : i == axis ? split.count : split.inner) *= dim;
  }
  return split;
}

AxisSplit split_flattened(std::span<const int64_t> dims, int64_t axis) {
  AxisSplit split;
  const int64_t rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  EDDY_DCHECK(axis >= 0 && axis <= rank) << "axis " << axis << " of " << rank;
  for (int64_t i = 0; i < rank; ++i) {
    (i < axis ? split.outer : split.count) *= dims[static_cast<size_t>(i)];
  }
  return split;
}

AxisSplit split_softmax(std::span<const int64_t> dims, int since_version, bool has_axis,
                        int64_t axis) {
  if (since_version < 13) return split_flattened(dims, has_axis ? axis : 1);
  return split_at_axis(dims, has_axis ? axis : -1);
}

}  // namespace eddy
