// Resize.
#include "ops/schema/families.h"
#include "ops/schema/resize_rules.h"
#include "ops/schema/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

const TensorView* value_of(const InferContext& context, int input) {
  return input >= 0 && context.has_input(static_cast<size_t>(input))
             ? context.value_or_null(static_cast<size_t>(input))
             : nullptr;
}

// An optional input that is there, not empty for sure, and whose content is not known yet.
bool is_pending(const InferContext& context, int input) {
  const auto i = static_cast<size_t>(input);
  if (input < 0 || !context.has_input(i) || context.value_or_null(i) != nullptr) return false;
  const TensorType& type = context.input(i).tensor;
  return !(type.is_ranked && type.dims.rank() == 1 && type.dims[0] == 0);
}

Status infer_resize(int since_version, InferContext& context) {
  ResizeRules rules;
  EDDY_RETURN_IF_ERROR(parse_resize(context.attributes(), since_version, rules));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  TensorType y = *x;
  if (!x->is_ranked) {
    context.set_output(0, y);
    return Status::ok();
  }
  const bool has_roi = rules.roi_input >= 0 && context.has_input(1);
  EDDY_RETURN_IF_ERROR(
      check_roi(rules, x->dims.rank(), has_roi ? &context.input(1).tensor : nullptr));
  if (is_pending(context, rules.scales_input) || is_pending(context, rules.sizes_input) ||
      !x->dims.is_static()) {
    for (int i = 0; i < y.dims.rank(); ++i) y.dims[i] = kUnknownDim;
    context.set_output(0, y);
    return Status::ok();
  }
  ResizeShape shape;
  EDDY_RETURN_IF_ERROR(resolve_resize(rules, x->dims, value_of(context, rules.scales_input),
                                      value_of(context, rules.sizes_input), shape));
  context.set_output(0, TensorType(x->element, shape.output));
  return Status::ok();
}

OpDef resize(int since_version) {
  const TypeSet floats = {ElementType::kFloat};
  const TypeSet roi_types = {ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16};
  const InputFlag host = InputFlag::kOptional | InputFlag::kHostValue;
  OpDef def;
  def.name = "Resize";
  def.since_version = since_version;
  def.inputs = {in("X", kNumericTypes)};
  if (since_version >= 11) def.inputs.push_back(in("roi", roi_types, InputFlag::kOptional));
  def.inputs.push_back(in("scales", floats, since_version >= 11 ? host : InputFlag::kHostValue));
  if (since_version >= 11) def.inputs.push_back(in("sizes", {ElementType::kInt64}, host));
  def.attributes = {attribute("mode", kString)};
  if (since_version >= 11) {
    for (const char* name : {"coordinate_transformation_mode", "nearest_mode"}) {
      def.attributes.push_back(attribute(name, kString));
    }
    def.attributes.push_back(attribute("cubic_coeff_a", kFloat));
    def.attributes.push_back(attribute("exclude_outside", kInt));
    def.attributes.push_back(attribute("extrapolation_value", kFloat));
  }
  if (since_version >= 18) {
    def.attributes.push_back(attribute("antialias", kInt));
    def.attributes.push_back(attribute("axes", kInts));
    def.attributes.push_back(attribute("keep_aspect_ratio_policy", kString));
  }
  def.infer = [since_version](InferContext& context) {
    return infer_resize(since_version, context);
  };
  return def;
}

}  // namespace

Status add_resize_schemas(OpTable& table) {
  return add_schemas(table, {resize(10), resize(11), resize(18)});
}

}  // namespace eddy
