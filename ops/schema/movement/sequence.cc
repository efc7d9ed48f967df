#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

Result<ValueType> sequence_input(const InferContext& context, size_t i) {
  const ValueType& type = context.input(i);
  if (!type.is_sequence()) {
    return invalid_argument("input " + std::to_string(i) + " must be a sequence, not " +
                            to_string(type));
  }
  return type;
}

Result<TensorType> element_of(const ValueType& sequence) {
  const ValueType inner = sequence.unwrapped();
  if (!inner.is_tensor()) {
    return unsupported("only sequences of tensors are supported, not " + to_string(sequence));
  }
  return inner.tensor;
}

// A position, where known, must be one integer; its range is the kernel's to check.
Status check_position(const InferContext& context, size_t i) {
  if (!context.has_input(i)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
  if (type->is_static() && type->dims.count() != 1) {
    return invalid_argument("position must be a scalar, not " + to_string(type->dims));
  }
  return Status::ok();
}

Status infer_sequence_construct(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  ValueType element = context.input(0);
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
    const auto both = join(element, *type);
    if (both) element = *both;
  }
  context.set_output(0, ValueType::sequence_of(element));
  return Status::ok();
}

Status infer_sequence_empty(InferContext& context) {
  const int64_t dtype =
      context.attributes().get_int("dtype", static_cast<int64_t>(ElementType::kFloat));
  if (dtype <= 0 || dtype >= kNumElementTypes) {
    return invalid_argument("dtype " + std::to_string(dtype) + " is no element type");
  }
  const TensorType element(static_cast<ElementType>(dtype));
  context.set_output(0, ValueType::sequence_of(element));
  return Status::ok();
}

Status infer_sequence_insert(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const ValueType sequence, sequence_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType element, element_of(sequence));
  EDDY_ASSIGN_OR_RETURN(const TensorType* tensor, tensor_input(context, 1));
  EDDY_RETURN_IF_ERROR(check_position(context, 2));
  const auto both = join(element, *tensor);
  if (!both) {
    return invalid_argument(to_string(ValueType(*tensor)) + " can't be inserted into " +
                            to_string(sequence));
  }
  context.set_output(0, ValueType::sequence_of(*both));
  return Status::ok();
}

Status infer_sequence_erase(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const ValueType sequence, sequence_input(context, 0));
  EDDY_RETURN_IF_ERROR(check_position(context, 1));
  context.set_output(0, sequence);
  return Status::ok();
}

Status infer_sequence_at(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const ValueType sequence, sequence_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType element, element_of(sequence));
  EDDY_RETURN_IF_ERROR(check_position(context, 1));
  context.set_output(0, element);
  return Status::ok();
}

Status infer_sequence_length(InferContext& context) {
  EDDY_RETURN_IF_ERROR(sequence_input(context, 0).take_status());
  context.set_output(0, TensorType(ElementType::kInt64, Dims()));
  return Status::ok();
}

// The size that all parts share, or kUnknownDim.
int64_t common_part(const HostInts& sizes, int64_t total) {
  if (sizes.size() == 0) return kUnknownDim;
  for (int64_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] != sizes[0]) return kUnknownDim;
  }
  if (sizes.size() == 1 && (total < 0 || sizes[0] <= 0 || total % sizes[0] != 0)) {
    return kUnknownDim;
  }
  return sizes[0] < 0 ? kUnknownDim : sizes[0];
}

Status infer_split_to_sequence(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  TensorType element = *input;
  if (!element.is_ranked) {
    context.set_output(0, ValueType::sequence_of(element));
    return Status::ok();
  }
  EDDY_ASSIGN_OR_RETURN(
      const int axis, normalize_axis(context.attributes().get_int("axis", 0), element.dims.rank()));
  const int64_t total = element.dims[axis];
  element.dims[axis] = 1;
  if (context.has_input(1)) {
    EDDY_ASSIGN_OR_RETURN(const auto sizes, host_ints(context, 1, "split"));
    element.dims[axis] = sizes ? common_part(*sizes, total) : kUnknownDim;
  } else if (context.attributes().get_int("keepdims", 1) == 0) {
    Dims dims;
    for (int d = 0; d < element.dims.rank(); ++d) {
      if (d != axis) dims.push_back(element.dims[d]);
    }
    element.dims = dims;
  }
  context.set_output(0, ValueType::sequence_of(element));
  return Status::ok();
}

Status infer_concat_from_sequence(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const ValueType sequence, sequence_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType element, element_of(sequence));
  if (!element.is_ranked) {
    context.set_output(0, element);
    return Status::ok();
  }
  const bool new_axis = context.attributes().get_int("new_axis", 0) != 0;
  const int rank = element.dims.rank() + (new_axis ? 1 : 0);
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", 0), rank));
  Dims dims;
  for (int d = 0; d < rank; ++d) {
    const int source = new_axis && d > axis ? d - 1 : d;
    EDDY_RETURN_IF_ERROR(push_dim(dims, d == axis ? kUnknownDim : element.dims[source]));
  }
  context.set_output(0, TensorType(element.element, dims));
  return Status::ok();
}

Status infer_optional(InferContext& context) {
  ValueType inner;
  if (context.has_input(0)) {
    inner = context.input(0);
  } else {
    const auto* type = context.attributes().find_or_null("type");
    if (type == nullptr) return invalid_argument("Optional needs an input or the attribute 'type'");
    inner = std::get<ValueType>(*type);
  }
  if (inner.is_optional()) return invalid_argument("an optional can't hold an optional");
  if (inner.num_wrappers == kMaxWrappers) return unsupported("the type nests too deep");
  context.set_output(0, ValueType::optional_of(inner));
  return Status::ok();
}

Status infer_optional_get_element(InferContext& context) {
  const ValueType& type = context.input(0);
  context.set_output(0, type.is_optional() ? type.unwrapped() : type);
  return Status::ok();
}

Status infer_optional_has_element(InferContext& context) {
  context.set_output(0, TensorType(ElementType::kBool, Dims()));
  return Status::ok();
}

constexpr TypeSet kIndexTypes = {ElementType::kInt32, ElementType::kInt64};
constexpr InputFlag kHost = InputFlag::kHostValue;
constexpr InputFlag kOptionalHost = InputFlag::kOptional | InputFlag::kHostValue;

std::vector<OpDef> sequences() {
  return {
      {.name = "SequenceConstruct",
       .since_version = 11,
       .inputs = {in("inputs", kAllTypes, InputFlag::kVariadic)},
       .infer = infer_sequence_construct,
       .is_value_op = true},
      {.name = "SequenceEmpty",
       .since_version = 11,
       .attributes = {attribute("dtype", AttributeKind::kInt)},
       .infer = infer_sequence_empty,
       .is_value_op = true},
      {.name = "SequenceInsert",
       .since_version = 11,
       .inputs = {in("input_sequence"), in("tensor"), in("position", kIndexTypes, kOptionalHost)},
       .infer = infer_sequence_insert,
       .is_value_op = true},
      {.name = "SequenceErase",
       .since_version = 11,
       .inputs = {in("input_sequence"), in("position", kIndexTypes, kOptionalHost)},
       .infer = infer_sequence_erase,
       .is_value_op = true},
      {.name = "SequenceAt",
       .since_version = 11,
       .inputs = {in("input_sequence"), in("position", kIndexTypes, kHost)},
       .infer = infer_sequence_at,
       .is_value_op = true},
      {.name = "SequenceLength",
       .since_version = 11,
       .inputs = {in("input_sequence", kAllTypes, InputFlag::kShapeOnly)},
       .infer = infer_sequence_length,
       .is_value_op = true},
      {.name = "SplitToSequence",
       .since_version = 11,
       .inputs = {in("input"), in("split", kIndexTypes, kOptionalHost)},
       .attributes = {attribute("axis", AttributeKind::kInt), flag("keepdims")},
       .infer = infer_split_to_sequence,
       .is_value_op = true},
      {.name = "ConcatFromSequence",
       .since_version = 11,
       .inputs = {in("input_sequence")},
       .attributes = {attribute("axis", AttributeKind::kInt, true), flag("new_axis")},
       .infer = infer_concat_from_sequence,
       .is_value_op = true},
  };
}

std::vector<OpDef> optionals() {
  return {
      {.name = "Optional",
       .since_version = 15,
       .inputs = {in("input", kAllTypes, InputFlag::kOptional)},
       .attributes = {attribute("type", AttributeKind::kType)},
       .infer = infer_optional,
       .is_value_op = true},
      // Opset 18 admits plain tensors and sequences; so does this, as a full optional is its value.
      {.name = "OptionalGetElement",
       .since_version = 15,
       .inputs = {in("input")},
       .infer = infer_optional_get_element,
       .is_value_op = true},
      {.name = "OptionalHasElement",
       .since_version = 15,
       .inputs = {in("input", kAllTypes, InputFlag::kOptional)},
       .infer = infer_optional_has_element,
       .is_value_op = true},
  };
}

}  // namespace

Status add_sequence_schemas(OpTable& table) {
  EDDY_RETURN_IF_ERROR(add_schemas(table, sequences()));
  return add_schemas(table, optionals());
}

}  // namespace eddy
