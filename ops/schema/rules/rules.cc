#include "ops/schema/rules/rules.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

Status add_schemas(OpTable& table, std::vector<OpDef> defs) {
  for (OpDef& def : defs) EDDY_RETURN_IF_ERROR(table.add(std::move(def)));
  return Status::ok();
}

Result<const TensorType*> tensor_input(const InferContext& context, size_t i) {
  const ValueType& type = context.input(i);
  if (!type.is_tensor()) {
    return invalid_argument("input " + std::to_string(i) + " must be a tensor, not " +
                            to_string(type));
  }
  return &type.tensor;
}

std::optional<int64_t> broadcast_dim(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  if (a >= 0 && b >= 0) return std::nullopt;
  if (a >= 0) return a;
  if (b >= 0) return b;
  return kUnknownDim;
}

std::optional<int64_t> merge_dim(int64_t a, int64_t b) {
  if (a == b) return a;
  if (a >= 0 && b >= 0) return std::nullopt;
  if (a >= 0) return a;
  if (b >= 0) return b;
  return a == kUnknownDim ? b : a;
}

std::optional<Dims> broadcast_dims(const Dims& a, const Dims& b) {
  const Dims& longer = a.rank() >= b.rank() ? a : b;
  const Dims& shorter = a.rank() >= b.rank() ? b : a;
  Dims result = longer;
  const int shift = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const std::optional<int64_t> dim = broadcast_dim(longer[i + shift], shorter[i]);
    if (!dim) return std::nullopt;
    result[i + shift] = *dim;
  }
  return result;
}

namespace {

// Names the first pair of inputs that do not broadcast, or the whole set when only their
// combination fails.
Status broadcast_error(const InferContext& context, size_t first, size_t last) {
  EDDY_CHECK(first < last && last <= context.num_inputs()) << first << " to " << last;
  for (size_t j = first + 1; j < last; ++j) {
    for (size_t i = first; i < j; ++i) {
      const Dims& a = context.input(i).tensor.dims;
      const Dims& b = context.input(j).tensor.dims;
      if (!broadcast_dims(a, b)) {
        return invalid_argument("inputs " + std::to_string(i) + " and " + std::to_string(j) +
                                " do not broadcast: " + to_string(a) + " and " + to_string(b));
      }
    }
  }
  return invalid_argument("inputs " + std::to_string(first) + " to " + std::to_string(last - 1) +
                          " do not broadcast");
}

}  // namespace

Result<TensorType> broadcast_inputs(const InferContext& context, size_t first, size_t last,
                                    ElementType element) {
  Dims dims;
  bool is_ranked = true;
  for (size_t i = first; i < last; ++i) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, i));
    if (!input->is_ranked) {
      is_ranked = false;
      continue;
    }
    const std::optional<Dims> both = broadcast_dims(dims, input->dims);
    if (!both) return broadcast_error(context, first, i + 1);
    dims = *both;
  }
  return is_ranked ? TensorType(element, dims) : TensorType(element);
}

bool may_equal(const Dims& a, const Dims& b) {
  bool fits = a.rank() == b.rank();
  for (int i = 0; fits && i < a.rank(); ++i) fits = merge_dim(a[i], b[i]).has_value();
  return fits;
}

bool may_stretch(const Dims& from, const Dims& to) {
  bool fits = from.rank() <= to.rank();
  for (int i = 0; fits && i < from.rank(); ++i) {
    fits = from[i] == 1 || merge_dim(from[i], to[to.rank() - from.rank() + i]).has_value();
  }
  return fits;
}

Status bad_shape(std::string_view name, const Dims& dims, std::string_view rule) {
  return invalid_argument(std::string(name) + " of shape " + to_string(dims) + " " +
                          std::string(rule));
}

Status expect_shape(const InferContext& context, size_t i, std::string_view name,
                    ExpectedShape shape) {
  if (!context.has_input(i)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
  if (!type->is_ranked) return Status::ok();
  bool fits = type->dims.rank() == static_cast<int>(shape.size());
  int axis = 0;
  for (const ExpectedAxis& expected : shape) {
    if (!fits) break;
    fits = merge_dim(type->dims[axis++], expected.dim).has_value();
  }
  if (fits) return Status::ok();
  std::string text;
  for (const ExpectedAxis& expected : shape) {
    text += text.empty() ? "must be [" : ", ";
    text += expected.dim < 0 ? expected.name : std::to_string(expected.dim);
  }
  return bad_shape(name, type->dims, text + "]");
}

Status expect_addend(const InferContext& context, size_t i, const Dims& result) {
  if (!context.has_input(i) || !context.input(i).tensor.is_ranked) return Status::ok();
  const Dims& addend = context.input(i).tensor.dims;
  if (may_equal(addend, result)) return Status::ok();
  return invalid_argument("the addend must have the shape of the result, " + to_string(result) +
                          ", not " + to_string(addend));
}

Status expect_same_element(const InferContext& context, size_t first, size_t last) {
  for (size_t i = first + 1; i < last; ++i) {
    if (!context.has_input(i)) continue;
    const ElementType expected = context.input(first).tensor.element;
    const ElementType found = context.input(i).tensor.element;
    if (found != expected) {
      return invalid_argument("inputs " + std::to_string(first) + " and " + std::to_string(i) +
                              " must have the same element type, not " +
                              std::string(element_type_name(expected)) + " and " +
                              std::string(element_type_name(found)));
    }
  }
  return Status::ok();
}

namespace {

Status axis_error(int64_t axis, int rank, int64_t low, int64_t high) {
  return invalid_argument("axis " + std::to_string(axis) + " is out of range for rank " +
                          std::to_string(rank) + ": " + std::to_string(low) + ".." +
                          std::to_string(high));
}

// Adds one axis to the mask.
Status mark_axis(int64_t axis, int rank, uint32_t& mask) {
  EDDY_ASSIGN_OR_RETURN(const int normal, normalize_axis(axis, rank));
  if (mask & (1u << normal)) {
    return invalid_argument("axis " + std::to_string(axis) + " is given twice");
  }
  mask |= 1u << normal;
  return Status::ok();
}

}  // namespace

Status expect_one_element(const InferContext& context, size_t i, std::string_view name) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
  const std::optional<int64_t> count = type->is_static() ? type->dims.count() : std::nullopt;
  if (!count || *count == 1) return Status::ok();
  return invalid_argument(std::string(name) + " must have one element, not " +
                          std::to_string(*count));
}

Result<int> normalize_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    if (rank == 0) {
      return invalid_argument("axis " + std::to_string(axis) + " of a scalar, which has no axes");
    }
    return axis_error(axis, rank, -rank, rank - 1);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<int> normalize_axis_inclusive(int64_t axis, int rank) {
  if (axis < -rank || axis > rank) return axis_error(axis, rank, -rank, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<uint32_t> axes_mask(std::span<const int64_t> axes, int rank) {
  uint32_t mask = 0;
  for (int64_t axis : axes) EDDY_RETURN_IF_ERROR(mark_axis(axis, rank, mask));
  return mask;
}

Result<uint32_t> axes_mask(const HostInts& axes, int rank) {
  uint32_t mask = 0;
  for (int64_t i = 0; i < axes.size(); ++i) {
    EDDY_RETURN_IF_ERROR(mark_axis(axes[i], rank, mask));
  }
  return mask;
}

Result<HostInts> HostInts::read(const TensorView& view, std::string_view name) {
  const bool wide = view.element == ElementType::kInt64;
  if (!wide && view.element != ElementType::kInt32) {
    return invalid_argument(std::string(name) + " must be int64 or int32, not " +
                            std::string(element_type_name(view.element)));
  }
  if (view.rank > 1) {
    return invalid_argument(std::string(name) + " must have at most one dimension, not " +
                            std::to_string(view.rank));
  }
  HostInts ints;
  ints.data_ = view.data;
  ints.size_ = view.count();
  ints.wide_ = wide;
  return ints;
}

Result<std::optional<HostInts>> host_ints(const InferContext& context, size_t i,
                                          std::string_view name) {
  const TensorView* value = context.has_input(i) ? context.value_or_null(i) : nullptr;
  if (value == nullptr || value->is_omitted()) return std::optional<HostInts>();
  EDDY_ASSIGN_OR_RETURN(const HostInts ints, HostInts::read(*value, name));
  return std::optional<HostInts>(ints);
}

Status infer_same_as_input(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  context.set_output(0, *input);
  return Status::ok();
}

Status infer_broadcast(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_ASSIGN_OR_RETURN(const TensorType type, broadcast_inputs(context, 0, context.num_inputs(),
                                                                context.input(0).tensor.element));
  context.set_output(0, type);
  return Status::ok();
}

FormalInput in(std::string name, TypeSet types, InputFlag flags) {
  return {std::move(name), types, flags};
}

FormalAttribute attribute(std::string name, AttributeKind kind, bool is_required) {
  FormalAttribute formal;
  formal.name = std::move(name);
  formal.kind = kind;
  formal.is_required = is_required;
  return formal;
}

FormalAttribute flag(std::string name) {
  FormalAttribute formal = attribute(std::move(name), AttributeKind::kInt);
  formal.is_flag = true;
  return formal;
}

FormalAttribute since(int version, FormalAttribute attribute) {
  attribute.since_version = version;
  return attribute;
}

FormalAttribute until(int version, FormalAttribute attribute) {
  attribute.last_version = version;
  return attribute;
}

FormalAttribute consumed_inputs() {
  return until(5, attribute("consumed_inputs", AttributeKind::kInts));
}

}  // namespace eddy
