// Elementwise operators: output dimensions are those of the input, or of all inputs broadcast.
// Those of two inputs begin with opset 7: before, they are functions of these (early.cc).
#include <span>
#include <string_view>

#include "ops/schema/families.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"
#include "ops/schema/unary_operators.h"

namespace eddy {
namespace {

constexpr TypeSet kOrderedTypes = kNumericTypes;
constexpr TypeSet kEqualTypes = kNumericTypes | kBoolType | TypeSet{ElementType::kString};
// All but strings.
constexpr TypeSet kBitTypes = kNumericTypes | kBoolType | kSmallTypes |
                              TypeSet{ElementType::kComplex64, ElementType::kComplex128};
constexpr uint64_t kFirst = 1;
constexpr uint64_t kBoth = 3;

Status infer_comparison(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  EDDY_ASSIGN_OR_RETURN(const TensorType type, broadcast_inputs(context, 0, 2, ElementType::kBool));
  context.set_output(0, type);
  return Status::ok();
}

// Pow: the exponent may have a type of its own since opset 12.
Status infer_pow(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* base, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType type, broadcast_inputs(context, 0, 2, base->element));
  context.set_output(0, type);
  return Status::ok();
}

Status infer_mod(InferContext& context) {
  EDDY_RETURN_IF_ERROR(infer_broadcast(context));
  const ElementType element = context.input(0).tensor.element;
  if (kFloatTypes.contains(element) && context.attributes().get_int("fmod", 0) == 0) {
    return invalid_argument("Mod of " + std::string(element_type_name(element)) +
                            " needs the attribute fmod=1");
  }
  return Status::ok();
}

Status infer_gelu(InferContext& context) {
  const std::string_view way = context.attributes().get_string("approximate", "none");
  if (way == "none" || way == "tanh") return infer_same_as_input(context);
  return invalid_argument("attribute 'approximate' must be none or tanh, not '" + std::string(way) +
                          "'");
}

Status infer_bit_shift(InferContext& context) {
  const std::string_view direction = context.attributes().get_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return invalid_argument("attribute 'direction' must be LEFT or RIGHT, not '" +
                            std::string(direction) + "'");
  }
  return infer_broadcast(context);
}

Status infer_where(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 1, 3));
  EDDY_ASSIGN_OR_RETURN(const TensorType type,
                        broadcast_inputs(context, 0, 3, context.input(1).tensor.element));
  context.set_output(0, type);
  return Status::ok();
}

// PRelu: the slope stretches over X.
Status infer_prelu(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* slope, tensor_input(context, 1));
  context.set_output(0, *x);
  if (!x->is_ranked || !slope->is_ranked) return Status::ok();
  const std::optional<Dims> both = broadcast_dims(x->dims, slope->dims);
  bool fits = both && both->rank() == x->dims.rank();
  for (int i = 0; fits && i < x->dims.rank(); ++i) {
    fits = merge_dim((*both)[i], x->dims[i]).has_value();
  }
  if (fits) return Status::ok();
  return invalid_argument("the slope of shape " + to_string(slope->dims) +
                          " does not stretch over X of shape " + to_string(x->dims));
}

// Max, Min, Sum, Mean before opset 8: all inputs have one shape.
Status infer_equal_shapes(InferContext& context) {
  EDDY_RETURN_IF_ERROR(infer_broadcast(context));
  const TensorType& first = context.input(0).tensor;
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    const TensorType& other = context.input(i).tensor;
    if (first.is_static() && other.is_static() && !(first.dims == other.dims)) {
      return invalid_argument("inputs 0 and " + std::to_string(i) +
                              " must have one shape before opset 8: " + to_string(first.dims) +
                              " and " + to_string(other.dims));
    }
  }
  return Status::ok();
}

// The direction of float8e8m0, whatever the target is.
Status check_round_mode(const InferContext& context) {
  const std::string_view mode = context.attributes().get_string("round_mode", "up");
  if (mode == "up" || mode == "down" || mode == "nearest") return Status::ok();
  return invalid_argument("attribute 'round_mode' is '" + std::string(mode.substr(0, 40)) +
                          "'; it must be up, down or nearest");
}

Status infer_cast(InferContext& context) {
  EDDY_RETURN_IF_ERROR(check_round_mode(context));
  const int64_t to = context.attributes().get_int("to", 0);
  if (to <= 0 || to >= kNumElementTypes) {
    return invalid_argument("attribute 'to' is " + std::to_string(to) +
                            ", which is no element type");
  }
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  TensorType type = *input;
  type.element = static_cast<ElementType>(to);
  context.set_output(0, type);
  return Status::ok();
}

Status infer_cast_like(InferContext& context) {
  EDDY_RETURN_IF_ERROR(check_round_mode(context));
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* like, tensor_input(context, 1));
  TensorType type = *input;
  type.element = like->element;
  context.set_output(0, type);
  return Status::ok();
}

Status infer_bit_cast(InferContext& context) {
  EDDY_RETURN_IF_ERROR(infer_cast(context));
  const ElementType from = context.input(0).tensor.element;
  const auto to = static_cast<ElementType>(context.attributes().get_int("to", 0));
  if (to == ElementType::kString) return invalid_argument("no bits can be seen as a string");
  if (from == ElementType::kUndefined || element_bits(from) == element_bits(to)) {
    return Status::ok();
  }
  return invalid_argument(std::string(element_type_name(from)) + " has " +
                          std::to_string(element_bits(from)) + " bits, which can't be seen as " +
                          std::string(element_type_name(to)) + " of " +
                          std::to_string(element_bits(to)));
}

Status infer_bool_of_input(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  TensorType type = *input;
  type.element = ElementType::kBool;
  context.set_output(0, type);
  return Status::ok();
}

// Clip since opset 11: the limits are inputs of one element.
Status infer_clip(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    EDDY_ASSIGN_OR_RETURN(const TensorType* limit, tensor_input(context, i));
    const std::optional<int64_t> count = limit->is_ranked ? limit->dims.count() : std::nullopt;
    if (count && *count != 1) {
      return invalid_argument(std::string(i == 1 ? "min" : "max") +
                              " must have one element, not the shape " + to_string(limit->dims));
    }
  }
  return infer_same_as_input(context);
}

// Lists of sizes are multiplied, too: [samples * heads, length].
Status batch_mul(BatchContext& context) {
  if (!context.is_counts(0) && !context.is_counts(1)) return batch_elementwise(context);
  const auto a = counts_of(context, 0), b = counts_of(context, 1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) {
    return expect_tensors(context);
  }
  std::vector<Count> product(a->size() == 1 ? b->size() : a->size());
  for (size_t i = 0; i < product.size(); ++i) {
    const Count &x = (*a)[a->size() == 1 ? 0 : i], &y = (*b)[b->size() == 1 ? 0 : i];
    if (x.is_of_samples && y.is_of_samples) return unsupported("squares the number of samples");
    product[i] = {x.is_of_samples || y.is_of_samples, x.each * y.each};
  }
  return set_counts(context, std::move(product), std::max(context.rank(0), context.rank(1)));
}

Status batch_cast(BatchContext& context) {
  const auto to = static_cast<ElementType>(context.attributes().get_int("to", 0));
  if (context.input(0).counts.empty() || !is_index_type(to)) return batch_entries(context);
  return set_counts(context, context.input(0).counts, context.rank(0));
}

// Of input 1 only the type is read.
Status batch_cast_like(BatchContext& context) {
  if (context.is_counts(0)) return expect_tensors(context);
  if (context.is_along(0)) context.set_output(0, context.input(0));
  return Status::ok();
}

// The constructors below make OpDefs of the common forms.

OpDef unary(std::string name, int since, TypeSet types,
            std::vector<FormalAttribute> attributes = {}) {
  OpDef def;
  def.name = std::move(name);
  def.since_version = since;
  def.inputs = {in("X", types)};
  def.attributes = std::move(attributes);
  def.infer = infer_same_as_input;
  def.in_place_inputs = kFirst;
  def.batch = batch_entries;
  return def;
}

OpDef to_bool(std::string name, int since, TypeSet types,
              std::vector<FormalAttribute> attributes = {}) {
  OpDef def = unary(std::move(name), since, types, std::move(attributes));
  def.infer = infer_bool_of_input;
  def.in_place_inputs = 0;
  return def;
}

OpDef binary(std::string name, int since, TypeSet types, InferFunction infer = infer_broadcast,
             std::vector<FormalAttribute> attributes = {}) {
  OpDef def;
  def.name = std::move(name);
  def.since_version = since;
  def.inputs = {in("A", types), in("B", types)};
  def.attributes = std::move(attributes);
  def.infer = std::move(infer);
  def.in_place_inputs = kBoth;
  def.batch = batch_elementwise;
  return def;
}

OpDef comparison(std::string name, int since, TypeSet types) {
  OpDef def = binary(std::move(name), since, types, infer_comparison);
  def.in_place_inputs = 0;
  return def;
}

OpDef variadic(std::string name, int since, TypeSet types, InferFunction infer) {
  OpDef def;
  def.name = std::move(name);
  def.since_version = since;
  def.inputs = {in("data_0", types, InputFlag::kVariadic)};
  def.infer = std::move(infer);
  // Later inputs are read after the first pass has written: only the first may be overwritten.
  def.in_place_inputs = kFirst;
  def.batch = batch_elementwise;
  return def;
}

FormalAttribute float_attribute(std::string name) {
  return attribute(std::move(name), AttributeKind::kFloat);
}

Status add_arithmetic(OpTable& table) {
  std::vector<OpDef> defs;
  for (const char* name : {"Add", "Sub", "Mul", "Div"}) {
    defs.push_back(binary(name, 7, kNumericTypes));
    if (std::string_view(name) == "Mul") defs.back().batch = batch_mul;
  }
  defs.push_back(binary("Pow", 7, kNumericTypes));
  defs.push_back(binary("Pow", 12, kNumericTypes, infer_pow));
  defs.back().in_place_inputs = kFirst;
  defs.push_back(binary("Mod", 10, kNumericTypes, infer_mod, {flag("fmod")}));
  defs.push_back(binary("BitShift", 11, kUnsignedIntTypes, infer_bit_shift,
                        {attribute("direction", AttributeKind::kString, true)}));
  for (FormalInput& input : defs.back().inputs) {
    input.later_types = kSignedIntTypes;
    input.later_since = 28;
  }
  for (const char* name : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
    defs.push_back(binary(name, 18, kIntTypes));
  }
  for (const char* name : {"Max", "Min", "Sum", "Mean"}) {
    const bool any = name[0] == 'M' && name[1] != 'e';
    const TypeSet types = any ? kNumericTypes : kFloatTypes;
    defs.push_back(variadic(name, 1, types, infer_equal_shapes));
    defs.back().attributes = {consumed_inputs()};
    defs.push_back(variadic(name, 8, types, infer_broadcast));
  }
  return add_schemas(table, std::move(defs));
}

Status add_logic(OpTable& table) {
  std::vector<OpDef> defs;
  for (const char* name : {"And", "Or", "Xor"}) {
    defs.push_back(binary(name, 7, kBoolType));
  }
  defs.push_back(comparison("Equal", 7, kEqualTypes));
  for (const char* name : {"Greater", "Less"}) {
    defs.push_back(comparison(name, 7, kOrderedTypes));
  }
  for (const char* name : {"GreaterOrEqual", "LessOrEqual"}) {
    defs.push_back(comparison(name, 12, kOrderedTypes));
  }
  defs.push_back(to_bool("IsNaN", 9, kFloatTypes));
  defs.push_back(
      to_bool("IsInf", 10, kFloatTypes, {flag("detect_positive"), flag("detect_negative")}));
  for (OpDef& test : std::span(defs).last(2)) {
    test.inputs[0].later_types = {ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                  ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ};
    test.inputs[0].later_since = 20;
  }
  OpDef where;
  where.name = "Where";
  where.since_version = 9;
  where.inputs = {in("condition", kBoolType), in("X"), in("Y")};
  where.infer = infer_where;
  where.in_place_inputs = 6;
  where.batch = batch_elementwise;
  defs.push_back(std::move(where));
  return add_schemas(table, std::move(defs));
}

Status add_casts(OpTable& table) {
  OpDef cast;
  cast.name = "Cast";
  cast.since_version = 6;
  cast.inputs = {in("input")};
  cast.attributes = {attribute("to", AttributeKind::kInt, true), since(19, flag("saturate")),
                     since(24, attribute("round_mode", AttributeKind::kString))};
  cast.infer = infer_cast;
  cast.batch = batch_cast;
  OpDef like = cast;
  like.name = "CastLike";
  like.since_version = 15;
  like.inputs = {in("input"), in("target_type", kAllTypes, InputFlag::kShapeOnly)};
  like.attributes = {since(19, flag("saturate")),
                     since(24, attribute("round_mode", AttributeKind::kString))};
  like.infer = infer_cast_like;
  like.batch = batch_cast_like;
  OpDef bits = cast;
  bits.name = "BitCast";
  bits.since_version = 26;
  bits.inputs = {in("input", kBitTypes)};
  bits.attributes = {attribute("to", AttributeKind::kInt, true)};
  bits.infer = infer_bit_cast;
  OpDef clip = unary("Clip", 11, kNumericTypes);
  clip.inputs = {in("input", kNumericTypes), in("min", kNumericTypes, InputFlag::kOptional),
                 in("max", kNumericTypes, InputFlag::kOptional)};
  clip.infer = infer_clip;
  OpDef old_clip = unary("Clip", 1, kFloatTypes,
                         {float_attribute("min"), float_attribute("max"), consumed_inputs()});
  return add_schemas(table, {std::move(cast), std::move(like), std::move(bits), std::move(clip),
                             std::move(old_clip)});
}

// What opset 6 has anew is what opset 1 had without `consumed_inputs`; Selu has other constants,
// too.
bool began_with_consumed_inputs(const UnaryOperator& op) {
  return op.since == 6 && op.name != "Selu";
}

Status add_activations(OpTable& table) {
  std::vector<OpDef> defs;
  for (const UnaryOperator& op : kUnaryOperators) {
    defs.push_back(unary(std::string(op.name), op.since, op.types));
    for (const FloatAttribute& attribute : op.attributes) {
      if (attribute.name.empty()) continue;
      defs.back().attributes.push_back(float_attribute(std::string(attribute.name)));
    }
    if (began_with_consumed_inputs(op)) {
      defs.back().since_version = 1;
      defs.back().attributes.push_back(consumed_inputs());
    }
    if (op.name != "Gelu") continue;
    defs.back().attributes = {attribute("approximate", AttributeKind::kString)};
    defs.back().infer = infer_gelu;
  }
  defs.push_back(binary("PRelu", 7, kNumericTypes, infer_prelu));
  defs.back().in_place_inputs = kFirst;
  return add_schemas(table, std::move(defs));
}

}  // namespace

Status add_elementwise_schemas(OpTable& table) {
  EDDY_RETURN_IF_ERROR(add_arithmetic(table));
  EDDY_RETURN_IF_ERROR(add_logic(table));
  EDDY_RETURN_IF_ERROR(add_casts(table));
  return add_activations(table);
}

}  // namespace eddy
