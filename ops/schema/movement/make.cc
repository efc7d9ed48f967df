#include <cmath>
#include <string>

#include "graph/ir/half.h"
#include "ops/schema/movement/movement_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

Dims length_of(size_t length) { return {static_cast<int64_t>(length)}; }

}  // namespace

Status infer_constant(InferContext& context) {
  if (context.attributes().entries().size() != 1) {
    return invalid_argument("Constant needs exactly one attribute, its value");
  }
  const auto& entry = context.attributes().entries()[0];
  TensorType type;
  if (const auto* tensor = std::get_if<Constant>(&entry.value)) {
    type = tensor->type();
  } else if (std::holds_alternative<int64_t>(entry.value)) {
    type = TensorType(ElementType::kInt64, Dims());
  } else if (std::holds_alternative<float>(entry.value)) {
    type = TensorType(ElementType::kFloat, Dims());
  } else if (std::holds_alternative<std::string>(entry.value)) {
    type = TensorType(ElementType::kString, Dims());
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&entry.value)) {
    type = TensorType(ElementType::kInt64, length_of(ints->size()));
  } else if (const auto* floats = std::get_if<std::vector<float>>(&entry.value)) {
    type = TensorType(ElementType::kFloat, length_of(floats->size()));
  } else if (const auto* strings = std::get_if<std::vector<std::string>>(&entry.value)) {
    type = TensorType(ElementType::kString, length_of(strings->size()));
  } else {
    return invalid_argument("the value of Constant can't be a type");
  }
  context.set_output(0, type);
  return Status::ok();
}

Status infer_constant_of_shape(InferContext& context) {
  ElementType element = ElementType::kFloat;
  if (const Constant* value = context.attributes().get_tensor_or_null("value")) {
    if (value->dims.count() != 1) {
      return invalid_argument("value must have one element, not the shape " +
                              to_string(value->dims));
    }
    element = value->element;
  }
  ListArgument shape;
  EDDY_RETURN_IF_ERROR(list_argument(context, 0, "input", shape));
  if (shape.length > kMaxRank) {
    return unsupported("the output would have " + text(shape.length) + " dimensions, more than " +
                       text(kMaxRank));
  }
  if (shape.length < 0) {
    context.set_output(0, TensorType(element));
    return Status::ok();
  }
  Dims dims;
  for (int i = 0; i < shape.length; ++i) {
    const bool known = shape.state == ListState::kKnown;
    if (known && shape.values[i] < 0) {
      return invalid_argument("the shape has the negative size " + text(shape.values[i]));
    }
    dims.push_back(known ? shape.values[i] : kUnknownDim);
  }
  return set_checked_output(context, 0, element, dims);
}

namespace {

Status too_many_steps() {
  return resource_exhausted("the range from start to limit has more steps than an int64 counts");
}

// How many of start, start + delta, ... lie before limit.
template <typename T>
Status count_steps(T start, T limit, T delta, int64_t& count) {
  if (delta == T(0)) return invalid_argument("delta is 0");
  if constexpr (std::is_floating_point_v<T>) {
    const double steps =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / delta);
    if (std::isnan(steps)) return invalid_argument("start, limit or delta is not a number");
    if (steps >= 0x1p62) return too_many_steps();
    count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  } else {
    const __int128 distance = static_cast<__int128>(limit) - start;
    const __int128 step = delta;
    __int128 steps = distance / step;
    if (distance % step != 0 && (distance > 0) == (step > 0)) ++steps;
    if (steps > INT64_MAX) return too_many_steps();
    count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  }
  return Status::ok();
}

template <typename T>
Status count_range(const InferContext& context, int64_t& count) {
  const auto value = [&](size_t i) { return context.value_or_null(i)->as<T>()[0]; };
  if constexpr (!std::is_arithmetic_v<T>) {
    return count_steps(static_cast<float>(value(0)), static_cast<float>(value(1)),
                       static_cast<float>(value(2)), count);
  } else {
    return count_steps<T>(value(0), value(1), value(2), count);
  }
}

Status count_range(const InferContext& context, ElementType element, int64_t& count) {
  switch (element) {
    case ElementType::kFloat:
      return count_range<float>(context, count);
    case ElementType::kDouble:
      return count_range<double>(context, count);
    case ElementType::kFloat16:
      return count_range<Float16>(context, count);
    case ElementType::kBfloat16:
      return count_range<Bfloat16>(context, count);
    case ElementType::kInt16:
      return count_range<int16_t>(context, count);
    case ElementType::kInt32:
      return count_range<int32_t>(context, count);
    case ElementType::kInt64:
      return count_range<int64_t>(context, count);
    default:
      return Status::ok();
  }
}

}  // namespace

Status infer_range(InferContext& context) {
  if (context.attributes().get_int("stash_type", 1) != 1) {
    return unsupported(
        "attribute 'stash_type' must be 1 (float): half types are computed as floats");
  }
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 3));
  bool is_known = true;
  for (size_t i = 0; i < 3; ++i) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
    if (type->is_static() && type->dims.count() != 1) {
      return invalid_argument("start, limit and delta must be scalars; input " + std::to_string(i) +
                              " is " + to_string(type->dims));
    }
    const TensorView* value = context.value_or_null(i);
    is_known = is_known && value != nullptr && value->count() == 1;
  }
  const ElementType element = context.input(0).tensor.element;
  int64_t count = kUnknownDim;
  if (is_known) EDDY_RETURN_IF_ERROR(count_range(context, element, count));
  return set_checked_output(context, 0, element, {count});
}

Status infer_eye_like(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  if (input->is_ranked && input->dims.rank() != 2) {
    return invalid_argument("the input must have two dimensions, not " + to_string(input->dims));
  }
  const int64_t dtype = context.attributes().get_int("dtype", static_cast<int64_t>(input->element));
  if (dtype < 0 || dtype >= kNumElementTypes ||
      !(kNumericTypes | kBoolType).contains(static_cast<ElementType>(dtype))) {
    return invalid_argument("dtype " + text(dtype) + " is neither a number nor bool");
  }
  const ElementType element = static_cast<ElementType>(dtype);
  const Dims dims = input->is_ranked ? input->dims : Dims{kUnknownDim, kUnknownDim};
  return set_checked_output(context, 0, element, dims);
}

namespace {

template <typename T>
Status depth_from(double value, T& depth) {
  if (!(value >= 0 && value < 0x1p62)) {
    return invalid_argument("depth must be at least 0 and below 2^62, not " +
                            std::to_string(value));
  }
  depth = static_cast<T>(value);
  return Status::ok();
}

// Depth may come as any numeric type.
Status read_depth(const TensorView& view, int64_t& depth) {
  if (view.count() != 1) {
    return invalid_argument("depth must have one element, not " + text(view.count()));
  }
  switch (view.element) {
    case ElementType::kFloat:
      return depth_from(view.as<float>()[0], depth);
    case ElementType::kDouble:
      return depth_from(view.as<double>()[0], depth);
    case ElementType::kInt8:
      depth = view.as<int8_t>()[0];
      break;
    case ElementType::kInt16:
      depth = view.as<int16_t>()[0];
      break;
    case ElementType::kInt32:
      depth = view.as<int32_t>()[0];
      break;
    case ElementType::kInt64:
      depth = view.as<int64_t>()[0];
      break;
    case ElementType::kUint8:
      depth = view.as<uint8_t>()[0];
      break;
    case ElementType::kUint16:
      depth = view.as<uint16_t>()[0];
      break;
    case ElementType::kUint32:
      depth = view.as<uint32_t>()[0];
      break;
    case ElementType::kUint64:
      return depth_from(static_cast<double>(view.as<uint64_t>()[0]), depth);
    default:
      return unsupported("depth of type " + std::string(element_type_name(view.element)) +
                         " is not supported");
  }
  if (depth < 0) return invalid_argument("depth is negative: " + text(depth));
  return Status::ok();
}

}  // namespace

Status infer_one_hot(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* indices, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* values, tensor_input(context, 2));
  if (values->is_static() && values->dims != Dims{2}) {
    return invalid_argument("values must be [off, on], not of shape " + to_string(values->dims));
  }
  if (!indices->is_ranked) {
    context.set_output(0, TensorType(values->element));
    return Status::ok();
  }
  int64_t depth = kUnknownDim;
  if (const TensorView* view = context.value_or_null(1)) {
    EDDY_RETURN_IF_ERROR(read_depth(*view, depth));
  }
  const int rank = indices->dims.rank() + 1;
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", -1), rank));
  Dims dims;
  for (int d = 0; d < rank; ++d) {
    EDDY_RETURN_IF_ERROR(push_dim(dims, d == axis ? depth : indices->dims[d < axis ? d : d - 1]));
  }
  return set_checked_output(context, 0, values->element, dims);
}

}  // namespace eddy
