// ConvInteger, QLinearConv and QLinearMatMul as functions: exact sums of integers, or of floats
// of a byte, which are then scaled and quantized.
//
// The convolutions sum in double, which holds all sums of up to 2^37 products of bytes exactly.
#include <string>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kByteTypes = {ElementType::kInt8, ElementType::kUint8};
constexpr TypeSet kByteFloatTypes = {ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                     ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ};
constexpr TypeSet kScaleTypes = {ElementType::kFloat, ElementType::kFloat16,
                                 ElementType::kBfloat16};

// Fails unless input `zero` has the element type of input `of`.
Status expect_zero_point(const InferContext& context, size_t of, size_t zero) {
  if (!context.has_input(zero) ||
      context.input(of).tensor.element == context.input(zero).tensor.element) {
    return Status::ok();
  }
  return invalid_argument("input " + std::to_string(zero) + ", a zero point, must have the type " +
                          "of input " + std::to_string(of));
}

Status infer_conv_integer(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_zero_point(context, 0, 2));
  EDDY_RETURN_IF_ERROR(expect_zero_point(context, 1, 3));
  context.set_output(0, TensorType(ElementType::kInt32));
  return Status::ok();
}

// Of QLinearConv and QLinearMatMul, whose first eight inputs are the same.
Status infer_quantized(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_zero_point(context, 0, 2));
  EDDY_RETURN_IF_ERROR(expect_zero_point(context, 3, 5));
  for (size_t i : {6, 7}) {
    EDDY_RETURN_IF_ERROR(expect_one_element(context, i, i == 6 ? "y_scale" : "y_zero_point"));
  }
  context.set_output(0, TensorType(context.input(7).tensor.element));
  return Status::ok();
}

// x - zero_point as double. Where the zero point is a list it is of the first axis of x.
Value centred(Expansion& e, Value x, Value zero_or_none) {
  const Value wide = e.cast(x, ElementType::kDouble);
  if (zero_or_none.is_none()) return wide;
  Value zero = e.cast(zero_or_none, ElementType::kDouble);
  const int rank = e.rank_or_fail(x, "an input");
  if (e.rank_or_fail(zero_or_none, "a zero point") == 1 && rank > 1) {
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < rank; ++axis) axes.push_back(axis);
    zero = e.op("Unsqueeze", {zero, e.int64s(axes)});
  }
  return e.op("Sub", {wide, zero});
}

Value sum_products(Expansion& e, Value x, Value x_zero, Value w, Value w_zero, Value bias) {
  Attributes attributes = e.attributes();
  const Value wide_bias = bias.is_none() ? bias : e.cast(bias, ElementType::kDouble);
  return e.op("Conv", {centred(e, x, x_zero), centred(e, w, w_zero), wide_bias},
              std::move(attributes));
}

void expand_conv_integer(Expansion& e) {
  const Value sums = sum_products(e, e.input(0), e.input(2), e.input(1), e.input(3), {});
  e.set_output(0, e.cast(sums, ElementType::kInt32));
}

// A factor for each row, column or channel: `axes` are put after that of a list. A vector, the
// input before, has one factor, whose axis is not the product's.
Value factor_of(Expansion& e, size_t input, std::span<const int64_t> axes) {
  const Value value = e.cast(e.input(input), ElementType::kFloat);
  const bool is_list = e.rank_or_fail(e.input(input), "a scale") == 1;
  const bool is_of_vector = e.rank_or_fail(e.input(input - 1), "an input") == 1;
  if (is_of_vector) return e.op("Reshape", {value, e.int64s(std::span<const int64_t>())});
  return is_list && !axes.empty() ? e.op("Unsqueeze", {value, e.int64s(axes)}) : value;
}

// round(sums * (x_scale * w_scale / y_scale)) + y_zero_point
void set_quantized(Expansion& e, Value sums, std::span<const int64_t> x_axes,
                   std::span<const int64_t> w_axes) {
  const Value no_axes = e.int64s(std::span<const int64_t>());
  const Value y_scale = e.op("Reshape", {e.cast(e.input(6), ElementType::kFloat), no_axes});
  const Value y_zero = e.op("Reshape", {e.input(7), no_axes});
  const Value scales = e.op("Mul", {factor_of(e, 1, x_axes), factor_of(e, 4, w_axes)});
  const Value factor = e.op("Div", {scales, y_scale});
  const Value scaled = e.op("Mul", {e.cast(sums, ElementType::kFloat), factor});
  e.set_output(0, e.op("QuantizeLinear", {scaled, e.number(ElementType::kFloat, 1), y_zero}));
}

// Of bytes that are floats: in double, which holds all products exactly. A list of zero points is
// of rows on the left, of columns on the right.
Value sum_float_products(Expansion& e) {
  static constexpr int64_t kLast[] = {-1};
  const auto centred_side = [&](size_t x, size_t zero, bool is_left) {
    Value less = e.cast(e.input(zero), ElementType::kDouble);
    const bool is_list = e.rank_or_fail(e.input(zero), "a zero point") == 1 &&
                         e.rank_or_fail(e.input(x), "an input") > 1;
    if (is_left && is_list) less = e.op("Unsqueeze", {less, e.int64s(kLast)});
    return e.op("Sub", {e.cast(e.input(x), ElementType::kDouble), less});
  };
  return e.op("MatMul", {centred_side(0, 2, true), centred_side(3, 5, false)});
}

void expand_qlinear_matmul(Expansion& e) {
  static constexpr int64_t kLast[] = {-1};
  const bool has_floats = kByteFloatTypes.contains(e.element(e.input(0))) ||
                          kByteFloatTypes.contains(e.element(e.input(3)));
  const Value sums = has_floats
                         ? sum_float_products(e)
                         : e.op("MatMulInteger", {e.input(0), e.input(3), e.input(2), e.input(5)});
  const bool has_columns = e.rank_or_fail(e.input(3), "b") > 1;
  set_quantized(e, sums, std::span(kLast, has_columns ? 1 : 0), {});
}

void expand_qlinear_conv(Expansion& e) {
  const int rank = e.rank_or_fail(e.input(0), "x");
  std::vector<int64_t> spatial;
  for (int64_t axis = 1; axis < rank - 1; ++axis) spatial.push_back(axis);
  const Value sums = sum_products(e, e.input(0), e.input(2), e.input(3), e.input(5), e.input(8));
  set_quantized(e, sums, {}, spatial);
}

std::vector<FormalInput> quantized_inputs(const char* x, const char* w, TypeSet scales,
                                          TypeSet bytes = kByteTypes) {
  const std::string a = x, b = w;
  return {in(a, bytes),          in(a + "_scale", scales), in(a + "_zero_point", bytes),
          in(b, bytes),          in(b + "_scale", scales), in(b + "_zero_point", bytes),
          in("y_scale", scales), in("y_zero_point", bytes)};
}

std::vector<FormalAttribute> window_attributes() {
  return {attribute("auto_pad", kString), attribute("dilations", kInts),
          attribute("group", kInt),       attribute("kernel_shape", kInts),
          attribute("pads", kInts),       attribute("strides", kInts)};
}

OpDef qlinear_matmul(int since_version, TypeSet scales, TypeSet bytes) {
  return {.name = "QLinearMatMul",
          .since_version = since_version,
          .inputs = quantized_inputs("a", "b", scales, bytes),
          .infer = infer_quantized,
          .expand = expand_qlinear_matmul};
}

}  // namespace

Status add_quantized_functions(OpTable& table) {
  const TypeSet floats = {ElementType::kFloat};
  const InputFlag optional = InputFlag::kOptional;
  std::vector<FormalInput> conv = quantized_inputs("x", "w", floats);
  conv.push_back(in("B", {ElementType::kInt32}, optional));
  return add_schemas(table, {{.name = "ConvInteger",
                              .since_version = 10,
                              .inputs = {in("x", kByteTypes), in("w", kByteTypes),
                                         in("x_zero_point", kByteTypes, optional),
                                         in("w_zero_point", kByteTypes, optional)},
                              .attributes = window_attributes(),
                              .infer = infer_conv_integer,
                              .expand = expand_conv_integer},
                             {.name = "QLinearConv",
                              .since_version = 10,
                              .inputs = std::move(conv),
                              .attributes = window_attributes(),
                              .infer = infer_quantized,
                              .expand = expand_qlinear_conv},
                             qlinear_matmul(10, floats, kByteTypes),
                             qlinear_matmul(21, kScaleTypes, kByteTypes | kByteFloatTypes)});
}

}  // namespace eddy
