// Resize.
#include "ops/schema/families.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/rules.h"
#include "ops/schema/windows/resize_rules.h"

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

// The entry of scales or sizes for the samples' axis; -1: it is not resized.
Result<int> place_of_samples(const BatchContext& context, const ResizeRules& rules) {
  if (rules.axes.empty()) return context.axis(0);
  for (size_t i = 0; i < rules.axes.size(); ++i) {
    EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(rules.axes[i], context.rank(0)));
    if (axis == context.axis(0)) return static_cast<int>(i);
  }
  return -1;
}

// The scale is known and 1, or the size that which it has.
bool is_kept(const BatchContext& context, const ResizeRules& rules, int place) {
  const auto entry = static_cast<size_t>(place);
  const TensorView* const scales = value_of(context.types(), rules.scales_input);
  if (scales != nullptr && scales->count() > 0) {
    return place < scales->count() && scales->as<float>()[entry] == 1.0f;
  }
  if (rules.sizes_input < 0) return false;
  const auto sizes = counts_of(context, static_cast<size_t>(rules.sizes_input));
  return sizes && entry < sizes->size() && (*sizes)[entry].is_of_samples &&
         (*sizes)[entry].each.equals(context.input(0).each);
}

template <int since_version>
Status batch_resize(BatchContext& context) {
  ResizeRules rules;
  EDDY_RETURN_IF_ERROR(parse_resize(context.attributes(), since_version, rules));
  if (!context.is_along(0)) return batch_entries(context);
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    const bool is_sizes = static_cast<int>(i) == rules.sizes_input;
    if (context.is_along(i) || (context.is_counts(i) && !is_sizes)) {
      return expect_shared(context, i);
    }
  }
  EDDY_ASSIGN_OR_RETURN(const int place, place_of_samples(context, rules));
  const bool is_plain = rules.aspect == ResizeAspect::kStretch &&
                        rules.coordinates != ResizeCoordinates::kTfCropAndResize;
  if (place >= 0 && (!is_plain || !is_kept(context, rules, place))) {
    return crosses_samples("resizes, or is not known to keep,", context.axis(0));
  }
  context.set_output(0, context.input(0));
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
    def.attributes.push_back(flag("exclude_outside"));
    def.attributes.push_back(attribute("extrapolation_value", kFloat));
  }
  if (since_version >= 18) {
    def.attributes.push_back(flag("antialias"));
    def.attributes.push_back(attribute("axes", kInts));
    def.attributes.push_back(attribute("keep_aspect_ratio_policy", kString));
  }
  def.infer = [since_version](InferContext& context) {
    return infer_resize(since_version, context);
  };
  def.batch = since_version == 10   ? batch_resize<10>
              : since_version == 11 ? batch_resize<11>
                                    : batch_resize<18>;
  return def;
}

}  // namespace

Status add_resize_schemas(OpTable& table) {
  return add_schemas(table, {resize(10), resize(11), resize(18)});
}

}  // namespace eddy
