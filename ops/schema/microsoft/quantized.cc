// DynamicQuantizeMatMul, MatMulIntegerToFloat, QLinearAdd, QLinearMul, QLinearConcat and
// QLinearGlobalAveragePool as functions: exact sums of integers that are then scaled, or floats
// between a DequantizeLinear and a QuantizeLinear.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/microsoft/microsoft.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kByteTypes = {ElementType::kInt8, ElementType::kUint8};
constexpr TypeSet kFloat32 = {ElementType::kFloat};
constexpr InputFlag kOptional = InputFlag::kOptional;

Status expect_zero_point(const InferContext& context, size_t of, size_t zero) {
  if (!context.has_input(zero) ||
      context.input(of).tensor.element == context.input(zero).tensor.element) {
    return Status::ok();
  }
  return invalid_argument("input " + std::to_string(zero) + ", a zero point, must have the type " +
                          "of input " + std::to_string(of));
}

// One value, or one for each column of input b.
Status expect_columns(const InferContext& context, size_t i, std::string_view name, size_t b) {
  if (!context.has_input(i)) return Status::ok();
  const TensorType &type = context.input(i).tensor, &matrix = context.input(b).tensor;
  if (!type.is_ranked || !matrix.is_ranked || type.dims.rank() == 0) return Status::ok();
  const int64_t columns =
      matrix.dims.rank() == 0 ? int64_t{1} : matrix.dims[matrix.dims.rank() - 1];
  const bool is_list = type.dims.rank() == 1;
  if (is_list && (type.dims[0] == 1 || merge_dim(type.dims[0], columns))) return Status::ok();
  return invalid_argument(std::string(name) + " must be one value or one for each column of " +
                          to_string(matrix.dims) + ", not " + to_string(type.dims));
}

Value scalar_of(Expansion& e, Value one_element) {
  return e.op("Reshape", {one_element, e.int64s(std::span<const int64_t>())});
}

// (A - zero) * (B - zero) as floats, times the scales, and the bias.
struct Product {
  Value a, a_zero, b, b_zero, a_scale, b_scale, bias;
};
Value scaled_product(Expansion& e, const Product& p) {
  const Value sums = e.op("MatMulInteger", {p.a, p.b, p.a_zero, p.b_zero});
  const Value scale = e.op("Mul", {p.a_scale, p.b_scale});
  const Value y = e.op("Mul", {e.cast(sums, e.element(scale)), scale});
  return p.bias.is_none() ? y : e.op("Add", {y, p.bias});
}

Status infer_dynamic_matmul(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_zero_point(context, 1, 3));
  EDDY_RETURN_IF_ERROR(expect_columns(context, 2, "b_scale", 1));
  EDDY_RETURN_IF_ERROR(expect_columns(context, 3, "b_zero_point", 1));
  EDDY_RETURN_IF_ERROR(expect_columns(context, 4, "bias", 1));
  context.set_output(0, TensorType(ElementType::kFloat));
  return Status::ok();
}

void expand_dynamic_matmul(Expansion& e) {
  const Value a[] = {e.input(0)};
  const std::vector<Value> quantized = e.ops("DynamicQuantizeLinear", a, {}, 3);
  e.set_output(0, scaled_product(e, {.a = quantized[0],
                                     .a_zero = quantized[2],
                                     .b = e.input(1),
                                     .b_zero = e.input(3),
                                     .a_scale = quantized[1],
                                     .b_scale = e.input(2),
                                     .bias = e.input(4)}));
}

Status infer_integer_to_float(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_zero_point(context, 0, 4));
  EDDY_RETURN_IF_ERROR(expect_zero_point(context, 1, 5));
  EDDY_RETURN_IF_ERROR(expect_one_element(context, 2, "a_scale"));
  if (context.has_input(4)) EDDY_RETURN_IF_ERROR(expect_one_element(context, 4, "a_zero_point"));
  EDDY_RETURN_IF_ERROR(expect_columns(context, 3, "b_scale", 1));
  EDDY_RETURN_IF_ERROR(expect_columns(context, 5, "b_zero_point", 1));
  EDDY_RETURN_IF_ERROR(expect_columns(context, 6, "bias", 1));
  context.set_output(0, TensorType(context.input(2).tensor.element));
  return Status::ok();
}

void expand_integer_to_float(Expansion& e) {
  e.set_output(0, scaled_product(e, {.a = e.input(0),
                                     .a_zero = e.has_input(4) ? scalar_of(e, e.input(4)) : Value{},
                                     .b = e.input(1),
                                     .b_zero = e.input(5),
                                     .a_scale = scalar_of(e, e.input(2)),
                                     .b_scale = e.input(3),
                                     .bias = e.input(6)}));
}

// `x` with the scale and zero point that stand in the inputs after it.
Value dequantized(Expansion& e, size_t x) {
  const Value zero = e.has_input(x + 2) ? scalar_of(e, e.input(x + 2)) : Value{};
  return e.op("DequantizeLinear", {e.input(x), scalar_of(e, e.input(x + 1)), zero});
}

Value quantized(Expansion& e, Value x, size_t scale, size_t zero, ElementType element) {
  const Value zero_point = e.has_input(zero) ? scalar_of(e, e.input(zero)) : e.number(element, 0);
  return e.op("QuantizeLinear", {x, scalar_of(e, e.input(scale)), zero_point});
}

Status infer_qlinear_binary(InferContext& context) {
  constexpr std::pair<size_t, const char*> kSingles[] = {{1, "A_scale"}, {2, "A_zero_point"},
                                                         {4, "B_scale"}, {5, "B_zero_point"},
                                                         {6, "C_scale"}, {7, "C_zero_point"}};
  for (const auto& [i, name] : kSingles) {
    if (context.has_input(i)) EDDY_RETURN_IF_ERROR(expect_one_element(context, i, name));
  }
  for (const size_t zero : {2, 3, 5, 7}) {
    if (!context.has_input(zero)) continue;
    if (context.input(zero).tensor.element == context.input(0).tensor.element) continue;
    return invalid_argument("A, B, C and their zero points must have one element type");
  }
  const Dims &a = context.input(0).tensor.dims, &b = context.input(3).tensor.dims;
  const bool is_known = context.input(0).tensor.is_ranked && context.input(3).tensor.is_ranked;
  if (is_known && !broadcast_dims(a, b)) {
    return invalid_argument("A and B do not broadcast: " + to_string(a) + " and " + to_string(b));
  }
  context.set_output(0, TensorType(context.input(0).tensor.element));
  return Status::ok();
}

void expand_qlinear_binary(Expansion& e, const char* op) {
  const Value y = e.op(op, {dequantized(e, 0), dequantized(e, 3)});
  e.set_output(0, quantized(e, y, 6, 7, e.element(e.input(0))));
}
void expand_qlinear_add(Expansion& e) { expand_qlinear_binary(e, "Add"); }
void expand_qlinear_mul(Expansion& e) { expand_qlinear_binary(e, "Mul"); }

// Scale and zero point of the result, then each input with its own.
Status infer_qlinear_concat(InferContext& context) {
  const size_t count = context.num_inputs();
  if (count < 5 || (count - 2) % 3 != 0) {
    return invalid_argument(
        "QLinearConcat takes Y_scale, Y_zero_point and then a tensor, its "
        "scale and its zero point for each input, not " +
        std::to_string(count) + " inputs");
  }
  for (size_t i = 0; i < count; ++i) {
    if (!context.has_input(i)) {
      return invalid_argument("input " + std::to_string(i) + " of QLinearConcat is missing");
    }
    const size_t place = i < 2 ? i : (i - 2) % 3 + 2;
    const bool is_scale = place == 0 || place == 3;
    const ElementType wanted = is_scale ? ElementType::kFloat : context.input(1).tensor.element;
    if (context.input(i).tensor.element != wanted) {
      return invalid_argument("input " + std::to_string(i) + " of QLinearConcat must be " +
                              std::string(element_type_name(wanted)) + ", not " +
                              std::string(element_type_name(context.input(i).tensor.element)));
    }
    if (place == 2) continue;
    EDDY_RETURN_IF_ERROR(expect_one_element(context, i, is_scale ? "a scale" : "a zero point"));
  }
  context.set_output(0, TensorType(context.input(1).tensor.element));
  return Status::ok();
}

void expand_qlinear_concat(Expansion& e) {
  std::vector<Value> parts;
  for (size_t i = 2; i < e.num_inputs(); i += 3) parts.push_back(dequantized(e, i));
  const Value y = e.op("Concat", parts, {{"axis", e.attributes().get_int("axis", 0)}});
  e.set_output(0, quantized(e, y, 0, 1, e.element(e.input(1))));
}

Status infer_qlinear_pool(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_zero_point(context, 0, 2));
  EDDY_RETURN_IF_ERROR(expect_zero_point(context, 0, 4));
  constexpr const char* kNames[] = {"x_scale", "x_zero_point", "y_scale", "y_zero_point"};
  for (size_t i = 1; i <= 4; ++i) {
    EDDY_RETURN_IF_ERROR(expect_one_element(context, i, kNames[i - 1]));
  }
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  if (!x->is_ranked || x->dims.rank() >= 3) return Status::ok();
  return invalid_argument("X of QLinearGlobalAveragePool must have at least 3 dimensions, not " +
                          to_string(x->dims));
}

void expand_qlinear_pool(Expansion& e) {
  const int rank = e.rank_or_fail(e.input(0), "X");
  if (rank < 0) return;
  const bool is_last = e.attributes().get_int("channels_last", 0) != 0;
  std::vector<int64_t> spatial;
  for (int axis = is_last ? 1 : 2; axis < rank - (is_last ? 1 : 0); ++axis) {
    spatial.push_back(axis);
  }
  const Value mean = e.op("ReduceMean", {dequantized(e, 0), e.int64s(spatial)});
  e.set_output(0, quantized(e, mean, 3, 4, e.element(e.input(0))));
}

OpDef qlinear_binary(const char* name, ExpandFunction expand) {
  return {.name = name,
          .domain = kMicrosoft,
          .inputs = {in("A", kByteTypes), in("A_scale", kFloat32),
                     in("A_zero_point", kByteTypes, kOptional), in("B", kByteTypes),
                     in("B_scale", kFloat32), in("B_zero_point", kByteTypes, kOptional),
                     in("C_scale", kFloat32), in("C_zero_point", kByteTypes, kOptional)},
          .infer = infer_qlinear_binary,
          .expand = expand};
}

}  // namespace

Status add_microsoft_quantized(OpTable& table) {
  const TypeSet scales = {ElementType::kFloat, ElementType::kFloat16};
  return add_schemas(
      table,
      {{.name = "DynamicQuantizeMatMul",
        .domain = kMicrosoft,
        .inputs = {in("A", kFloat32), in("B", kByteTypes), in("b_scale", kFloat32),
                   in("b_zero_point", kByteTypes, kOptional), in("bias", kFloat32, kOptional)},
        .infer = infer_dynamic_matmul,
        .expand = expand_dynamic_matmul},
       {.name = "MatMulIntegerToFloat",
        .domain = kMicrosoft,
        .inputs = {in("A", kByteTypes), in("B", kByteTypes), in("a_scale", scales),
                   in("b_scale", scales), in("a_zero_point", kByteTypes, kOptional),
                   in("b_zero_point", kByteTypes, kOptional), in("bias", scales, kOptional)},
        .infer = infer_integer_to_float,
        .expand = expand_integer_to_float},
       qlinear_binary("QLinearAdd", expand_qlinear_add),
       qlinear_binary("QLinearMul", expand_qlinear_mul),
       {.name = "QLinearConcat",
        .domain = kMicrosoft,
        .inputs = {in("Y_scale", kFloat32), in("Y_zero_point", kByteTypes),
                   in("inputs", kByteTypes | kFloat32, InputFlag::kVariadic)},
        .attributes = {attribute("axis", kInt, true)},
        .infer = infer_qlinear_concat,
        .expand = expand_qlinear_concat},
       {.name = "QLinearGlobalAveragePool",
        .domain = kMicrosoft,
        .inputs = {in("X", kByteTypes), in("x_scale", kFloat32), in("x_zero_point", kByteTypes),
                   in("y_scale", kFloat32), in("y_zero_point", kByteTypes)},
        .attributes = {flag("channels_last")},
        .infer = infer_qlinear_pool,
        .expand = expand_qlinear_pool}});
}

}  // namespace eddy
