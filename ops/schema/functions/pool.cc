// MaxUnpool as a function.
#include <string>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

// By how much an axis of the output is longer than (size - 1) strides.
Status read_windows(const Attributes& attributes, std::vector<int64_t>& strides,
                    std::vector<int64_t>& extents) {
  const std::span<const int64_t> kernel = attributes.get_ints("kernel_shape");
  const std::span<const int64_t> pads = attributes.get_ints("pads");
  const std::span<const int64_t> given = attributes.get_ints("strides");
  const size_t rank = kernel.size();
  if ((!pads.empty() && pads.size() != 2 * rank) || (!given.empty() && given.size() != rank)) {
    return invalid_argument("pads and strides must be of the " + std::to_string(rank) +
                            " axes of kernel_shape");
  }
  for (size_t i = 0; i < rank; ++i) {
    const int64_t stride = given.empty() ? 1 : given[i];
    const int64_t padding[] = {pads.empty() ? 0 : pads[i], pads.empty() ? 0 : pads[rank + i]};
    const auto is_size = [](int64_t value, int64_t least) {
      return value >= least && value <= INT32_MAX;
    };
    if (!is_size(kernel[i], 1) || !is_size(stride, 1) || !is_size(padding[0], 0) ||
        !is_size(padding[1], 0)) {
      return invalid_argument("kernel_shape and strides must be positive, pads not negative");
    }
    strides.push_back(stride);
    extents.push_back(kernel[i] - padding[0] - padding[1]);
  }
  return Status::ok();
}

// The sizes of what the windows give, -1 where those of X are not known.
Status size_windows(const Dims& x, const std::vector<int64_t>& strides,
                    const std::vector<int64_t>& extents, Dims& sizes) {
  sizes = x;
  for (size_t i = 0; i < strides.size(); ++i) {
    int64_t& size = sizes[static_cast<int>(i) + 2];
    if (size < 0) continue;
    if (!__builtin_mul_overflow(size - 1, strides[i], &size) &&
        !__builtin_add_overflow(size, extents[i], &size) && size >= 0) {
      continue;
    }
    return invalid_argument("kernel_shape, strides and pads make no size of axis " +
                            std::to_string(i + 2) + " of X, of shape " + to_string(x));
  }
  return Status::ok();
}

// Each index counts the elements of what the windows give.
Status check_places(const InferContext& context, const Dims& sizes) {
  const TensorView* const indices = context.value_or_null(1);
  const std::optional<int64_t> count = sizes.count();
  if (indices == nullptr || !count) return Status::ok();
  for (int64_t i = 0; i < indices->count(); ++i) {
    const int64_t index = indices->as<int64_t>()[i];
    if (index >= 0 && index < *count) continue;
    return invalid_argument("element " + std::to_string(i) + " of I is " + std::to_string(index) +
                            ", which is no place in the " + std::to_string(*count) +
                            " elements of shape " + to_string(sizes));
  }
  return Status::ok();
}

Status infer_max_unpool(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* indices, tensor_input(context, 1));
  std::vector<int64_t> strides, extents;
  EDDY_RETURN_IF_ERROR(read_windows(context.attributes(), strides, extents));
  context.set_output(0, TensorType(x->element));
  if (!x->is_ranked) return Status::ok();
  const int rank = x->dims.rank();
  if (rank < 3 || static_cast<size_t>(rank) != strides.size() + 2) {
    return invalid_argument("X must have the axes of kernel_shape after [N, C], not " +
                            to_string(x->dims));
  }
  if (indices->is_ranked && indices->dims.rank() != rank) {
    return invalid_argument("I must have the shape of X, not " + to_string(indices->dims));
  }
  for (int axis = 0; indices->is_ranked && axis < rank; ++axis) {
    if (merge_dim(x->dims[axis], indices->dims[axis])) continue;
    return bad_shape("I", indices->dims, "must be that of X, " + to_string(x->dims));
  }
  Dims sizes;
  EDDY_RETURN_IF_ERROR(size_windows(x->dims, strides, extents, sizes));
  EDDY_RETURN_IF_ERROR(check_places(context, sizes));
  Dims dims = x->dims;
  for (int axis = context.has_input(2) ? 0 : 2; axis < rank; ++axis) dims[axis] = kUnknownDim;
  context.set_output(0, TensorType(x->element, dims));
  return Status::ok();
}

// An index counts the elements of the output that the windows give. An output_shape that is larger
// has zeros after them on each axis.
void expand_max_unpool(Expansion& e) {
  std::vector<int64_t> strides, extents;
  Status status = read_windows(e.attributes(), strides, extents);
  if (!status.is_ok()) return e.fail(std::move(status));
  const int rank = static_cast<int>(strides.size()) + 2;
  const Value x = e.input(0), one = e.number(ElementType::kInt64, 1);
  const Value steps = e.op("Mul", {e.op("Sub", {e.sizes(x, 2, rank), one}), e.int64s(strides)});
  const std::vector<Value> parts = {e.sizes(x, 0, 2), e.op("Add", {steps, e.int64s(extents)})};
  const Value shape = e.op("Concat", parts, {{"axis", int64_t{0}}});
  const Value count = e.op("ReduceProd", {shape}, {{"keepdims", int64_t{1}}});
  const Value zeros = e.op("Expand", {e.number(e.element(x), 0), count});
  const Value flat = e.int64s({-1});
  const Value places = e.op("Reshape", {e.input(1), flat}), values = e.op("Reshape", {x, flat});
  const Value filled = e.op("ScatterElements", {zeros, places, values}, {{"axis", int64_t{0}}});
  const Value y = e.op("Reshape", {filled, shape}, {{"allowzero", int64_t{1}}});
  if (!e.has_input(2)) return e.set_output(0, y);
  const std::vector<Value> sides = {e.op("Sub", {shape, shape}), e.op("Sub", {e.input(2), shape})};
  e.set_output(0, e.op("Pad", {y, e.op("Concat", sides, {{"axis", int64_t{0}}})}));
}

}  // namespace

Status add_pool_functions(OpTable& table) {
  return add_schemas(table, {{.name = "MaxUnpool",
                              .since_version = 9,
                              .inputs = {in("X", kFloatTypes),
                                         in("I", {ElementType::kInt64}, InputFlag::kHostValue),
                                         in("output_shape", {ElementType::kInt64},
                                            InputFlag::kOptional | InputFlag::kHostValue)},
                              .attributes = {attribute("kernel_shape", kInts, true),
                                             attribute("pads", kInts), attribute("strides", kInts)},
                              .infer = infer_max_unpool,
                              .expand = expand_max_unpool}});
}

}  // namespace eddy
