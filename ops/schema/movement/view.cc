#include <algorithm>
#include <string>

#include "ops/schema/movement/movement_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

TensorType unknown_of_rank(ElementType element, int64_t rank) {
  Dims dims;
  for (int64_t d = 0; d < rank; ++d) dims.push_back(kUnknownDim);
  return {element, dims};
}

}  // namespace

Status infer_identity(InferContext& context) {
  context.set_output(0, context.input(0));
  return Status::ok();
}

Status infer_reshape(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  ListArgument shape;
  EDDY_RETURN_IF_ERROR(list_argument(context, 1, "shape", shape));
  if (shape.length > kMaxRank) {
    return unsupported("the output would have " + text(shape.length) + " dimensions, more than " +
                       text(kMaxRank));
  }
  const bool allow_zero = context.attributes().get_int("allowzero", 0) != 0;
  if (shape.state != ListState::kKnown) {
    context.set_output(0, shape.length < 0 ? TensorType(data->element)
                                           : unknown_of_rank(data->element, shape.length));
    return Status::ok();
  }
  Dims dims;
  if (data->is_ranked) {
    EDDY_RETURN_IF_ERROR(resolve_reshape(data->dims, shape.values, allow_zero, dims));
  } else {
    for (int64_t dim : shape.values.span()) {
      dims.push_back(dim < 0 || (dim == 0 && !allow_zero) ? kUnknownDim : dim);
    }
  }
  context.set_output(0, TensorType(data->element, dims));
  return Status::ok();
}

namespace {

// Without axes every dimension of size 1 goes, which needs all of them known.
void squeeze_ones(InferContext& context, const TensorType& data) {
  if (!data.dims.is_static()) {
    context.set_output(0, TensorType(data.element));
    return;
  }
  Dims dims;
  for (int64_t dim : data.dims.span()) {
    if (dim != 1) dims.push_back(dim);
  }
  context.set_output(0, TensorType(data.element, dims));
}

}  // namespace

Status infer_squeeze(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  ListArgument axes;
  EDDY_RETURN_IF_ERROR(list_argument(context, 1, "axes", axes));
  if (!data->is_ranked) {
    context.set_output(0, *data);
    return Status::ok();
  }
  const int rank = data->dims.rank();
  if (axes.state == ListState::kAbsent) {
    squeeze_ones(context, *data);
    return Status::ok();
  }
  if (axes.state == ListState::kUnknown) {
    context.set_output(
        0, axes.length < 0
               ? TensorType(data->element)
               : unknown_of_rank(data->element, std::max<int64_t>(rank - axes.length, 0)));
    return Status::ok();
  }
  EDDY_ASSIGN_OR_RETURN(const uint32_t mask, axes_mask(axes.values.span(), rank));
  Dims dims;
  for (int d = 0; d < rank; ++d) {
    if (((mask >> d) & 1u) == 0) {
      dims.push_back(data->dims[d]);
    } else if (data->dims[d] >= 0 && data->dims[d] != 1) {
      return invalid_argument("axis " + text(d) + " of " + to_string(data->dims) +
                              " is not 1 and can't be squeezed");
    }
  }
  context.set_output(0, TensorType(data->element, dims));
  return Status::ok();
}

Status infer_unsqueeze(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  ListArgument axes;
  EDDY_RETURN_IF_ERROR(list_argument(context, 1, "axes", axes));
  if (!data->is_ranked || axes.length < 0) {
    context.set_output(0, TensorType(data->element));
    return Status::ok();
  }
  const int64_t rank = data->dims.rank() + axes.length;
  if (rank > kMaxRank) {
    return unsupported("the output would have " + text(rank) + " dimensions, more than " +
                       text(kMaxRank));
  }
  if (axes.state == ListState::kUnknown) {
    context.set_output(0, unknown_of_rank(data->element, rank));
    return Status::ok();
  }
  EDDY_ASSIGN_OR_RETURN(const uint32_t mask, axes_mask(axes.values.span(), static_cast<int>(rank)));
  Dims dims;
  int next = 0;
  for (int d = 0; d < rank; ++d) dims.push_back((mask >> d) & 1u ? 1 : data->dims[next++]);
  context.set_output(0, TensorType(data->element, dims));
  return Status::ok();
}

namespace {

// The product of dimensions [first, last): unknown when one is, but a lone symbol stays.
Status flat_dim(const Dims& dims, int first, int last, int64_t& product) {
  product = 1;
  bool has_zero = false;
  bool overflows = false;
  for (int d = first; d < last; ++d) {
    has_zero |= dims[d] == 0;
    if (dims[d] == 1) continue;
    if (product == 1) {
      product = dims[d];
    } else if (product < 0 || dims[d] < 0) {
      product = kUnknownDim;
    } else {
      overflows |= __builtin_mul_overflow(product, dims[d], &product);
    }
  }
  if (has_zero) product = 0;
  if (!overflows || has_zero) return Status::ok();
  return resource_exhausted("the elements of " + to_string(dims) + " exceed int64");
}

}  // namespace

Status infer_flatten(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  if (!data->is_ranked) {
    context.set_output(0, unknown_of_rank(data->element, 2));
    return Status::ok();
  }
  const int rank = data->dims.rank();
  const int64_t given = context.attributes().get_int("axis", 1);
  // Other operators define no negative axes before opset 11, and every runtime accepts them.
  if (given < 0 && context.opset_version() < 11) {
    return invalid_argument("axis " + text(given) +
                            " of Flatten is negative, which came with "
                            "opset 11, but the node is of opset " +
                            std::to_string(context.opset_version()));
  }
  EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis_inclusive(given, rank));
  Dims dims = {1, 1};
  EDDY_RETURN_IF_ERROR(flat_dim(data->dims, 0, axis, dims[0]));
  EDDY_RETURN_IF_ERROR(flat_dim(data->dims, axis, rank, dims[1]));
  context.set_output(0, TensorType(data->element, dims));
  return Status::ok();
}

namespace {

// Input `i` where it is known and a float or a double; else a ratio that is allowed.
double known_ratio(const InferContext& context, size_t i) {
  const TensorView* ratio = context.value_or_null(i);
  if (ratio == nullptr) return 0;
  if (ratio->element == ElementType::kFloat) return ratio->as<float>()[0];
  return ratio->element == ElementType::kDouble ? ratio->as<double>()[0] : 0;
}

// The ratio counts in training only.
Status check_dropout_inputs(const InferContext& context) {
  if (context.has_input(1)) EDDY_RETURN_IF_ERROR(expect_one_element(context, 1, "ratio"));
  if (!context.has_input(2)) return Status::ok();
  EDDY_RETURN_IF_ERROR(expect_one_element(context, 2, "training_mode"));
  const TensorView* training = context.value_or_null(2);
  if (training == nullptr || !training->as<bool>()[0]) return Status::ok();
  return check_dropout_ratio(known_ratio(context, 1));
}

}  // namespace

Status check_dropout_ratio(double ratio) {
  if (ratio >= 0 && ratio < 1) return Status::ok();
  return invalid_argument("ratio must lie in [0, 1), not " + std::to_string(ratio));
}

Status infer_dropout(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  EDDY_RETURN_IF_ERROR(check_dropout_inputs(context));
  TensorType mask = *data;
  if (context.opset_version() >= 10) mask.element = ElementType::kBool;
  context.set_output(0, *data);
  context.set_output(1, mask);
  return Status::ok();
}

Status infer_shape(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  Dims dims = {kUnknownDim};
  if (data->is_ranked) {
    const int64_t rank = data->dims.rank();
    const int64_t start = context.attributes().get_int("start", 0);
    const int64_t end = context.attributes().get_int("end", rank);
    dims[0] = resolve_slice_range(rank, start, end, 1).count;
  }
  context.set_output(0, TensorType(ElementType::kInt64, dims));
  return Status::ok();
}

Status infer_size(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  if (data->is_ranked && data->dims.is_static()) {
    EDDY_RETURN_IF_ERROR(check_size(data->element, data->dims));
  }
  context.set_output(0, TensorType(ElementType::kInt64, Dims()));
  return Status::ok();
}

}  // namespace eddy
