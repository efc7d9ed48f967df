#include <algorithm>
#include <string>

#include "graph/base/check.h"
#include "ops/schema/movement/movement_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

// The sum of two dimensions, unknown when one is; nullopt when it exceeds int64.
std::optional<int64_t> add_dims(int64_t a, int64_t b) {
  if (a < 0 || b < 0) return kUnknownDim;
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

Status concat_error(const InferContext& context, size_t i, int axis) {
  return invalid_argument("inputs 0 and " + std::to_string(i) + " differ outside axis " +
                          text(axis) + ": " + to_string(context.input(0)) + " and " +
                          to_string(context.input(i)));
}

// Merges `dims` into `result`, adding along `axis`.
Status concat_dims(const InferContext& context, size_t i, int axis, const Dims& dims,
                   Dims& result) {
  EDDY_DCHECK(axis >= 0 && axis < result.rank()) << "axis " << axis << " of " << result.rank();
  if (dims.rank() != result.rank()) return concat_error(context, i, axis);
  for (int d = 0; d < dims.rank(); ++d) {
    const auto dim = d == axis ? add_dims(result[d], dims[d]) : merge_dim(result[d], dims[d]);
    if (!dim) return concat_error(context, i, axis);
    result[d] = *dim;
  }
  return Status::ok();
}

}  // namespace

Status infer_concat(InferContext& context) {
  const size_t count = context.num_inputs();
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, count));
  const ElementType element = context.input(0).tensor.element;
  Dims dims;
  int axis = -1;
  bool is_ranked = true;
  for (size_t i = 0; i < count; ++i) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
    if (!type->is_ranked) {
      is_ranked = false;
      continue;
    }
    if (axis >= 0) {
      EDDY_RETURN_IF_ERROR(concat_dims(context, i, axis, type->dims, dims));
      continue;
    }
    EDDY_ASSIGN_OR_RETURN(
        axis, normalize_axis(context.attributes().get_int("axis", 1), type->dims.rank()));
    dims = type->dims;
  }
  if (!is_ranked && axis >= 0) dims[axis] = kUnknownDim;
  context.set_output(0, axis >= 0 ? TensorType(element, dims) : TensorType(element));
  return Status::ok();
}

namespace {

Status split_by_sizes(InferContext& context, const TensorType& type, int axis, const HostInts* ints,
                      std::span<const int64_t> list) {
  const int64_t count = ints != nullptr ? ints->size() : static_cast<int64_t>(list.size());
  if (count != static_cast<int64_t>(context.num_outputs())) {
    return invalid_argument("split has " + text(count) + " entries for " +
                            std::to_string(context.num_outputs()) + " outputs");
  }
  Dims dims = type.dims;
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = ints != nullptr ? (*ints)[i] : list[static_cast<size_t>(i)];
    if (size < 0) return invalid_argument("split has the negative size " + text(size));
    if (__builtin_add_overflow(sum, size, &sum)) sum = INT64_MAX;
    dims[axis] = size;
    context.set_output(static_cast<size_t>(i), TensorType(type.element, dims));
  }
  if (type.dims[axis] >= 0 && sum != type.dims[axis]) {
    return invalid_argument("the sizes of split add up to " + text(sum) + ", but axis " +
                            text(axis) + " has " + text(type.dims[axis]));
  }
  return Status::ok();
}

Status split_equally(InferContext& context, const TensorType& type, int axis, bool uneven) {
  const int64_t count = static_cast<int64_t>(context.num_outputs());
  EDDY_DCHECK(count > 0) << "a Split without outputs";
  const int64_t total = type.dims[axis];
  int64_t part = kUnknownDim;
  if (total >= 0) EDDY_RETURN_IF_ERROR(equal_part(total, count, uneven, part));
  Dims dims = type.dims;
  int64_t left = total;
  for (int64_t i = 0; i < count; ++i) {
    dims[axis] = total >= 0 ? std::min(part, left) : kUnknownDim;
    left -= dims[axis];
    context.set_output(static_cast<size_t>(i), TensorType(type.element, dims));
  }
  return Status::ok();
}

Status check_num_outputs(const InferContext& context) {
  if (!context.attributes().has("num_outputs")) return Status::ok();
  if (context.has_input(1)) {
    return invalid_argument("give either the input split or num_outputs, not both");
  }
  const int64_t count = context.attributes().get_int("num_outputs", 0);
  if (count == static_cast<int64_t>(context.num_outputs())) return Status::ok();
  return invalid_argument("num_outputs is " + text(count) + ", but the node has " +
                          std::to_string(context.num_outputs()) + " outputs");
}

}  // namespace

Status infer_split(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  EDDY_RETURN_IF_ERROR(check_num_outputs(context));
  const TensorType type = *input;
  if (!type.is_ranked) {
    for (size_t i = 0; i < context.num_outputs(); ++i) context.set_output(i, type);
    return Status::ok();
  }
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", 0), type.dims.rank()));
  if (context.attributes().has("split")) {
    return split_by_sizes(context, type, axis, nullptr, context.attributes().get_ints("split"));
  }
  if (!context.has_input(1)) {
    return split_equally(context, type, axis, context.attributes().has("num_outputs"));
  }
  EDDY_ASSIGN_OR_RETURN(const auto sizes, host_ints(context, 1, "split"));
  if (sizes) return split_by_sizes(context, type, axis, &*sizes, {});
  Dims dims = type.dims;
  dims[axis] = kUnknownDim;
  for (size_t i = 0; i < context.num_outputs(); ++i) {
    context.set_output(i, TensorType(type.element, dims));
  }
  return Status::ok();
}

Status infer_slice(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  ListArgument starts, ends, axes, steps;
  EDDY_RETURN_IF_ERROR(list_argument(context, 1, "starts", starts));
  EDDY_RETURN_IF_ERROR(list_argument(context, 2, "ends", ends));
  EDDY_RETURN_IF_ERROR(list_argument(context, 3, "axes", axes));
  EDDY_RETURN_IF_ERROR(list_argument(context, 4, "steps", steps));
  if (!data->is_ranked) {
    context.set_output(0, *data);
    return Status::ok();
  }
  Dims dims = data->dims;
  const auto known = [](const ListArgument& list) { return list.state != ListState::kUnknown; };
  if (known(starts) && known(ends) && known(axes) && known(steps)) {
    SliceRanges ranges;
    EDDY_RETURN_IF_ERROR(
        resolve_slice(data->dims, starts.values, ends.values, axes.values, steps.values, ranges));
    for (int d = 0; d < dims.rank(); ++d) dims[d] = ranges[static_cast<size_t>(d)].count;
  } else {
    // Only the axes named can change; when they are not known, any can.
    uint32_t mask = UINT32_MAX;
    if (axes.state == ListState::kKnown) {
      EDDY_ASSIGN_OR_RETURN(mask, axes_mask(axes.values.span(), dims.rank()));
    } else if (axes.state == ListState::kAbsent && starts.length >= 0) {
      if (starts.length > dims.rank()) {
        return invalid_argument(text(starts.length) + " starts are given for a tensor of rank " +
                                std::to_string(dims.rank()));
      }
      mask = (1u << starts.length) - 1;
    }
    for (int d = 0; d < dims.rank(); ++d) {
      if ((mask >> d) & 1u) dims[d] = kUnknownDim;
    }
  }
  context.set_output(0, TensorType(data->element, dims));
  return Status::ok();
}

Status infer_gather(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* indices, tensor_input(context, 1));
  if (!data->is_ranked || !indices->is_ranked) {
    context.set_output(0, TensorType(data->element));
    return Status::ok();
  }
  const int rank = data->dims.rank();
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", 0), rank));
  Dims dims;
  for (int d = 0; d < axis; ++d) dims.push_back(data->dims[d]);
  for (int64_t dim : indices->dims.span()) EDDY_RETURN_IF_ERROR(push_dim(dims, dim));
  for (int d = axis + 1; d < rank; ++d) EDDY_RETURN_IF_ERROR(push_dim(dims, data->dims[d]));
  return set_checked_output(context, 0, data->element, dims);
}

Status infer_transpose(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  const std::span<const int64_t> given = context.attributes().get_ints("perm");
  IntList perm;
  if (!data->is_ranked) {
    context.set_output(0, *data);
    if (given.empty()) return Status::ok();
    if (given.size() > kMaxRank) {
      return unsupported("perm has " + std::to_string(given.size()) +
                         " entries; a tensor has at most " + std::to_string(kMaxRank) +
                         " dimensions");
    }
    return resolve_permutation(given, static_cast<int>(given.size()), perm);
  }
  const int rank = data->dims.rank();
  EDDY_RETURN_IF_ERROR(resolve_permutation(given, rank, perm));
  Dims dims = data->dims;
  for (int d = 0; d < rank; ++d) dims[d] = data->dims[static_cast<int>(perm[d])];
  context.set_output(0, TensorType(data->element, dims));
  return Status::ok();
}

namespace {

Status padded_dim(int64_t dim, int64_t before, int64_t after, PadMode mode, int axis,
                  int64_t& padded) {
  if (before == 0 && after == 0) {
    padded = dim;
    return Status::ok();
  }
  padded = kUnknownDim;
  if (dim < 0) return Status::ok();
  if (__builtin_add_overflow(dim, before, &padded) ||
      __builtin_add_overflow(padded, after, &padded)) {
    return resource_exhausted("axis " + text(axis) + " of size " + text(dim) + " padded by " +
                              text(before) + " and " + text(after) + " exceeds int64");
  }
  if (padded < 0 || (before < 0 && dim + before < 0) || (after < 0 && dim + after < 0)) {
    return invalid_argument("pads " + text(before) + " and " + text(after) +
                            " crop more than the " + text(dim) + " elements of axis " + text(axis));
  }
  if (dim == 0 && padded > 0 && mode != PadMode::kConstant) {
    return invalid_argument("axis " + text(axis) + " is empty: only mode constant can pad it");
  }
  return Status::ok();
}

Status pad_dims(const Dims& from, const PadAmounts& amounts, PadMode mode, Dims& to) {
  for (int d = 0; d < from.rank(); ++d) {
    const size_t axis = static_cast<size_t>(d);
    EDDY_RETURN_IF_ERROR(
        padded_dim(from[d], amounts.before[axis], amounts.after[axis], mode, d, to[d]));
  }
  return Status::ok();
}

}  // namespace

Status infer_pad(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  PadMode mode = PadMode::kConstant;
  EDDY_RETURN_IF_ERROR(parse_pad_mode(context.attributes().get_string("mode", "constant"),
                                      context.opset_version(), mode));
  ListArgument pads, axes;
  EDDY_RETURN_IF_ERROR(list_argument(context, 1, "pads", pads));
  EDDY_RETURN_IF_ERROR(list_argument(context, 3, "axes", axes));
  if (context.has_input(2) && context.input(2).tensor.element != data->element) {
    return invalid_argument("constant_value must have the data's element type");
  }
  if (!data->is_ranked) {
    context.set_output(0, *data);
    return Status::ok();
  }
  Dims dims = data->dims;
  if (pads.state == ListState::kKnown && axes.state != ListState::kUnknown) {
    PadAmounts amounts;
    EDDY_RETURN_IF_ERROR(resolve_pads(pads.values, axes.values, axes.state == ListState::kKnown,
                                      dims.rank(), amounts));
    EDDY_RETURN_IF_ERROR(pad_dims(data->dims, amounts, mode, dims));
    return set_checked_output(context, 0, data->element, dims);
  }
  uint32_t mask = UINT32_MAX;
  if (axes.state == ListState::kKnown) {
    EDDY_ASSIGN_OR_RETURN(mask, axes_mask(axes.values.span(), dims.rank()));
  }
  for (int d = 0; d < dims.rank(); ++d) {
    if ((mask >> d) & 1u) dims[d] = kUnknownDim;
  }
  context.set_output(0, TensorType(data->element, dims));
  return Status::ok();
}

namespace {

// The shape is not known yet, but its length is: a size above 1 can't change.
void expand_to_unknown(InferContext& context, const TensorType& data, int64_t length) {
  const int shift = std::max<int>(static_cast<int>(length) - data.dims.rank(), 0);
  Dims dims;
  for (int d = 0; d < shift; ++d) dims.push_back(kUnknownDim);
  for (int64_t dim : data.dims.span()) dims.push_back(dim > 1 ? dim : kUnknownDim);
  context.set_output(0, TensorType(data.element, dims));
}

}  // namespace

Status infer_expand(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  ListArgument shape;
  EDDY_RETURN_IF_ERROR(list_argument(context, 1, "shape", shape));
  if (shape.length > kMaxRank) {
    return unsupported("the output would have " + text(shape.length) + " dimensions, more than " +
                       text(kMaxRank));
  }
  if (!data->is_ranked || (shape.state == ListState::kUnknown && shape.length < 0)) {
    context.set_output(0, TensorType(data->element));
    return Status::ok();
  }
  if (shape.state == ListState::kUnknown) {
    expand_to_unknown(context, *data, shape.length);
    return Status::ok();
  }
  Dims wanted;
  for (int64_t dim : shape.values.span()) {
    if (dim < 0) return invalid_argument("shape has the negative size " + text(dim));
    wanted.push_back(dim);
  }
  const auto dims = broadcast_dims(data->dims, wanted);
  if (!dims) {
    return invalid_argument(to_string(data->dims) + " does not broadcast to " + to_string(wanted));
  }
  return set_checked_output(context, 0, data->element, *dims);
}

Status infer_tile(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  ListArgument repeats;
  EDDY_RETURN_IF_ERROR(list_argument(context, 1, "repeats", repeats));
  if (!data->is_ranked) {
    context.set_output(0, TensorType(data->element));
    return Status::ok();
  }
  Dims dims = data->dims;
  if (repeats.length >= 0 && repeats.length != dims.rank()) {
    return invalid_argument("repeats has " + text(repeats.length) +
                            " entries for a tensor of rank " + text(dims.rank()));
  }
  for (int d = 0; d < dims.rank(); ++d) {
    const int64_t dim = dims[d];
    dims[d] = kUnknownDim;
    if (repeats.state != ListState::kKnown) continue;
    const int64_t times = repeats.values[d];
    if (times < 0) return invalid_argument("repeats has the negative count " + text(times));
    if (times == 1) dims[d] = dim;
    if (dim >= 0 && __builtin_mul_overflow(dim, times, &dims[d])) {
      return resource_exhausted("axis " + text(d) + " of size " + text(dim) + " repeated " +
                                text(times) + " times exceeds int64");
    }
  }
  return set_checked_output(context, 0, data->element, dims);
}

namespace {

Status block_input(const InferContext& context, const TensorType*& data, int64_t& block) {
  EDDY_ASSIGN_OR_RETURN(data, tensor_input(context, 0));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 0, "input", {"N", "C", "H", "W"}));
  block = context.attributes().get_int("blocksize", 0);
  if (block < 1 || block > INT32_MAX) {
    return invalid_argument("blocksize must be positive and below 2^31, not " + text(block));
  }
  return Status::ok();
}

Status scale_dim(int64_t& dim, int64_t factor) {
  EDDY_DCHECK(factor > 0) << "factor " << factor;
  if (dim < 0) {
    dim = kUnknownDim;
  } else if (__builtin_mul_overflow(dim, factor, &dim)) {
    return resource_exhausted("the output's size exceeds int64");
  }
  return Status::ok();
}

Status divide_dim(int64_t& dim, int64_t factor, std::string_view axis) {
  EDDY_DCHECK(factor > 0) << "factor " << factor;
  if (dim < 0) {
    dim = kUnknownDim;
    return Status::ok();
  }
  if (dim % factor != 0) {
    return invalid_argument(std::string(axis) + " is " + text(dim) + ", no multiple of " +
                            text(factor) + " (from blocksize)");
  }
  dim /= factor;
  return Status::ok();
}

}  // namespace

Status infer_depth_to_space(InferContext& context) {
  const TensorType* data = nullptr;
  int64_t block = 1;
  EDDY_RETURN_IF_ERROR(block_input(context, data, block));
  const std::string_view mode = context.attributes().get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    return invalid_argument("mode '" + std::string(mode) + "' is neither DCR nor CRD");
  }
  Dims dims =
      data->is_ranked ? data->dims : Dims{kUnknownDim, kUnknownDim, kUnknownDim, kUnknownDim};
  EDDY_RETURN_IF_ERROR(divide_dim(dims[1], block * block, "C"));
  EDDY_RETURN_IF_ERROR(scale_dim(dims[2], block));
  EDDY_RETURN_IF_ERROR(scale_dim(dims[3], block));
  return set_checked_output(context, 0, data->element, dims);
}

Status infer_space_to_depth(InferContext& context) {
  const TensorType* data = nullptr;
  int64_t block = 1;
  EDDY_RETURN_IF_ERROR(block_input(context, data, block));
  Dims dims =
      data->is_ranked ? data->dims : Dims{kUnknownDim, kUnknownDim, kUnknownDim, kUnknownDim};
  EDDY_RETURN_IF_ERROR(scale_dim(dims[1], block * block));
  EDDY_RETURN_IF_ERROR(divide_dim(dims[2], block, "H"));
  EDDY_RETURN_IF_ERROR(divide_dim(dims[3], block, "W"));
  return set_checked_output(context, 0, data->element, dims);
}

Status infer_trilu(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  if (data->is_ranked && data->dims.rank() < 2) {
    return invalid_argument("the input must have at least two dimensions, not " +
                            to_string(data->dims));
  }
  if (context.has_input(1)) EDDY_RETURN_IF_ERROR(expect_one_element(context, 1, "k"));
  context.set_output(0, *data);
  return Status::ok();
}

}  // namespace eddy
