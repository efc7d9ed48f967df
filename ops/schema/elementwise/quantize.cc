// Linear quantization: one scale for the tensor, one for each index of an axis (opset 13), or one
// for each block along an axis (opset 21). Since opset 19 to floats of 8 bits, since 23 of 4.
#include <algorithm>

#include "ops/schema/families.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

constexpr TypeSet kQuantizedTypes = {
    ElementType::kInt8,          ElementType::kUint8,      ElementType::kInt16,
    ElementType::kUint16,        ElementType::kInt4,       ElementType::kUint4,
    ElementType::kInt2,          ElementType::kUint2,      ElementType::kFloat8E4M3FN,
    ElementType::kFloat8E5M2,    ElementType::kFloat4E2M1, ElementType::kFloat8E4M3FNUZ,
    ElementType::kFloat8E5M2FNUZ};
constexpr TypeSet kDequantizableTypes = kQuantizedTypes | TypeSet{ElementType::kInt32};
constexpr TypeSet kRealTypes = {ElementType::kFloat, ElementType::kFloat16, ElementType::kBfloat16};
constexpr TypeSet kScaleTypes = kRealTypes | TypeSet{ElementType::kFloat8E8M0};

bool has_one_element(const Dims& dims) { return dims.count() == int64_t{1}; }
bool may_have_one_element(const Dims& dims) {
  return std::ranges::all_of(dims, [](int64_t dim) { return dim == 1 || dim < 0; });
}

Status scale_error(const Dims& scale, const Dims& x, int64_t axis) {
  return invalid_argument("a scale of shape " + to_string(scale) + " does not fit x of shape " +
                          to_string(x) + " on axis " + std::to_string(axis));
}

// Blocks: the scale has x's shape, with `axis` divided by the block size and rounded up.
Status check_blocks(const Dims& x, const Dims& scale, int axis, int64_t block_size) {
  bool fits = scale.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) {
    if (x[i] < 0 || scale[i] < 0) continue;
    const int64_t expected = i == axis ? x[i] / block_size + (x[i] % block_size != 0) : x[i];
    fits = scale[i] == expected;
  }
  return fits ? Status::ok() : scale_error(scale, x, axis);
}

Status check_scale(const InferContext& context) {
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (context.has_input(i)) EDDY_RETURN_IF_ERROR(tensor_input(context, i).status());
  }
  const TensorType& x = context.input(0).tensor;
  const TensorType& scale = context.input(1).tensor;
  const int64_t block_size = context.attributes().get_int("block_size", 0);
  if (block_size < 0) {
    return invalid_argument("attribute 'block_size' is " + std::to_string(block_size) +
                            ", which is below 0");
  }
  if (!x.is_ranked || !scale.is_ranked) return Status::ok();
  if (context.has_input(2) && context.input(2).tensor.is_ranked) {
    const Dims& zero = context.input(2).tensor.dims;
    const bool both_single = has_one_element(zero) && has_one_element(scale.dims);
    if (!both_single && zero.is_static() && scale.dims.is_static() && !(zero == scale.dims)) {
      return invalid_argument("the zero point must have the scale's shape: " + to_string(zero) +
                              " and " + to_string(scale.dims));
    }
  }
  if (block_size == 0 && may_have_one_element(scale.dims)) return Status::ok();
  if (context.opset_version() < 13) {
    return invalid_argument("the scale of shape " + to_string(scale.dims) +
                            " must be one value before opset 13");
  }
  const int64_t given = context.attributes().get_int("axis", 1);
  EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(given, x.dims.rank()));
  if (block_size > 0) return check_blocks(x.dims, scale.dims, axis, block_size);
  if (scale.dims.rank() != 1 || !merge_dim(scale.dims[0], x.dims[axis])) {
    return scale_error(scale.dims, x.dims, axis);
  }
  return Status::ok();
}

// x / scale is computed as floats.
Status check_precision(const InferContext& context) {
  const int64_t precision = context.attributes().get_int("precision", 0);
  if (precision == 0 || precision == static_cast<int64_t>(ElementType::kFloat)) return Status::ok();
  return unsupported("attribute 'precision' is " + std::to_string(precision) +
                     ", but only 1 (float) is supported; leave it out");
}

Status infer_quantize(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_RETURN_IF_ERROR(check_scale(context));
  EDDY_RETURN_IF_ERROR(check_precision(context));
  const int64_t named = context.attributes().get_int("output_dtype", 0);
  ElementType element = ElementType::kUint8;
  if (context.has_input(2)) {
    element = context.input(2).tensor.element;
    if (named != 0 && named != static_cast<int64_t>(element)) {
      return invalid_argument("attribute 'output_dtype' and the zero point disagree");
    }
  } else if (named != 0) {
    if (named < 0 || named >= kNumElementTypes) {
      return invalid_argument("attribute 'output_dtype' is " + std::to_string(named) +
                              ", which is no element type");
    }
    element = static_cast<ElementType>(named);
  }
  if (!kQuantizedTypes.contains(element)) {
    return unsupported("quantizing to " + std::string(element_type_name(element)));
  }
  TensorType type = *x;
  type.element = element;
  context.set_output(0, type);
  return Status::ok();
}

Status infer_dequantize(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_RETURN_IF_ERROR(check_scale(context));
  if (context.has_input(2) && context.input(2).tensor.element != x->element) {
    return invalid_argument("the zero point must have x's element type");
  }
  TensorType type = *x;
  type.element = context.input(1).tensor.element;
  // A power of two is no result.
  if (type.element == ElementType::kFloat8E8M0) type.element = ElementType::kFloat;
  const int64_t named = context.attributes().get_int("output_dtype", 0);
  if (named != 0) {
    if (named < 0 || named >= kNumElementTypes ||
        !kRealTypes.contains(static_cast<ElementType>(named))) {
      return invalid_argument("attribute 'output_dtype' is " + std::to_string(named) +
                              ", which is none of float (1), float16 (10) and bfloat16 (16)");
    }
    type.element = static_cast<ElementType>(named);
  }
  context.set_output(0, type);
  return Status::ok();
}

Status infer_dynamic(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  TensorType type = *x;
  type.element = ElementType::kUint8;
  context.set_output(0, type);
  context.set_output(1, TensorType(ElementType::kFloat, {}));
  context.set_output(2, TensorType(ElementType::kUint8, {}));
  return Status::ok();
}

// One scale, or one for each entry of another axis.
Status batch_scaled(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  const int64_t given = context.attributes().get_int("axis", 1);
  const Dims& scale = context.dims(1);
  if (scale.rank() > 0 && !has_one_element(scale)) {
    EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(given, context.rank(0)));
    const bool has_blocks = context.attributes().get_int("block_size", 0) > 0;
    if (has_blocks || scale.rank() != 1 || axis == context.axis(0)) {
      return crosses_samples("has scales along", context.axis(0));
    }
  }
  return batch_entries(context);
}

Status batch_dynamic(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  return context.is_along(0) ? unsupported("finds one range for all samples") : Status::ok();
}

OpDef quantize(std::string name, TypeSet x, TypeSet zero_point, InferFunction infer) {
  OpDef def;
  def.name = std::move(name);
  def.since_version = 10;
  def.inputs = {in("x", x), in("scale", kScaleTypes),
                in("zero_point", zero_point, InputFlag::kOptional)};
  def.attributes = {since(13, attribute("axis", AttributeKind::kInt)),
                    since(21, attribute("block_size", AttributeKind::kInt))};
  def.infer = std::move(infer);
  def.batch = batch_scaled;
  return def;
}

}  // namespace

Status add_quantize_schemas(OpTable& table) {
  std::vector<OpDef> defs;
  defs.push_back(quantize("QuantizeLinear", kRealTypes | TypeSet{ElementType::kInt32},
                          kQuantizedTypes, infer_quantize));
  defs.back().attributes.push_back(since(19, flag("saturate")));
  defs.back().attributes.push_back(since(21, attribute("output_dtype", AttributeKind::kInt)));
  defs.back().attributes.push_back(since(23, attribute("precision", AttributeKind::kInt)));
  defs.push_back(
      quantize("DequantizeLinear", kDequantizableTypes, kDequantizableTypes, infer_dequantize));
  defs.back().attributes.push_back(since(23, attribute("output_dtype", AttributeKind::kInt)));
  OpDef dynamic;
  dynamic.name = "DynamicQuantizeLinear";
  dynamic.since_version = 11;
  dynamic.inputs = {in("x", {ElementType::kFloat})};
  dynamic.min_outputs = 1;
  dynamic.max_outputs = 3;
  dynamic.infer = infer_dynamic;
  dynamic.batch = batch_dynamic;
  defs.push_back(std::move(dynamic));
  return add_schemas(table, std::move(defs));
}

}  // namespace eddy
