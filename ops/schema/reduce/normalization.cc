// BatchNormalization, LayerNormalization, RMSNormalization, InstanceNormalization, LRN.
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

// X: at least two dimensions, channels second. Null dims where it is unranked.
Status read_channels(const InferContext& context, std::string_view op, const TensorType*& x,
                     int64_t& channels) {
  EDDY_ASSIGN_OR_RETURN(x, tensor_input(context, 0));
  channels = kUnknownDim;
  if (!x->is_ranked) return Status::ok();
  if (x->dims.rank() < 2) {
    return invalid_argument("X of " + std::string(op) + " must have at least 2 dimensions, not " +
                            to_string(x->dims));
  }
  channels = x->dims[1];
  return Status::ok();
}

// Inputs [first, last) hold one value for each channel; learns their number.
Status check_per_channel(const InferContext& context, size_t first, size_t last,
                         const char* const* names, int64_t& channels) {
  for (size_t i = first; i < last; ++i) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
    if (!type->is_ranked) continue;
    const std::optional<int64_t> both =
        type->dims.rank() == 1 ? merge_dim(type->dims[0], channels) : std::nullopt;
    if (!both) {
      return invalid_argument(std::string(names[i - first]) +
                              " must hold one value for each channel (" + std::to_string(channels) +
                              "), not " + to_string(type->dims));
    }
    channels = *both;
  }
  return Status::ok();
}

Status infer_batch_normalization(InferContext& context) {
  static constexpr const char* kNames[] = {"scale", "B", "mean", "var"};
  const TensorType* x;
  int64_t channels;
  EDDY_RETURN_IF_ERROR(read_channels(context, "BatchNormalization", x, channels));
  EDDY_RETURN_IF_ERROR(check_per_channel(context, 1, 5, kNames, channels));
  const bool trains = context.attributes().get_int("training_mode", 0) != 0;
  if (context.num_outputs() > 1 && !trains) {
    return invalid_argument(context.opset_version() < 14
                                ? "BatchNormalization has one output; training is supported from "
                                  "opset 14 on"
                                : "BatchNormalization has one output unless training_mode is 1");
  }
  context.set_output(0, *x);
  for (size_t o = 1; o < context.num_outputs(); ++o) {
    context.set_output(o, TensorType(context.input(o + 2).tensor.element, Dims{channels}));
  }
  return Status::ok();
}

Status infer_instance_normalization(InferContext& context) {
  static constexpr const char* kNames[] = {"scale", "B"};
  const TensorType* x;
  int64_t channels;
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 3));
  EDDY_RETURN_IF_ERROR(read_channels(context, "InstanceNormalization", x, channels));
  EDDY_RETURN_IF_ERROR(check_per_channel(context, 1, 3, kNames, channels));
  context.set_output(0, *x);
  return Status::ok();
}

// Scale and B broadcast to X without widening it.
Status check_broadcasts_to(const InferContext& context, size_t input, std::string_view name,
                           const Dims& x) {
  if (!context.has_input(input)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, input));
  if (!type->is_ranked) return Status::ok();
  if (may_stretch(type->dims, x)) return Status::ok();
  return invalid_argument(std::string(name) + " does not broadcast to X: " + to_string(type->dims) +
                          " to " + to_string(x));
}

Status infer_layer_normalization(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const int64_t stash = context.attributes().get_int("stash_type", 1);
  const ElementType statistics = stash == 1 ? ElementType::kFloat : static_cast<ElementType>(stash);
  if (stash != 1 && stash != 16) {
    return invalid_argument("stash_type must be 1 (float) or 16 (bfloat16), not " +
                            std::to_string(stash));
  }
  context.set_output(0, *x);
  if (!x->is_ranked) {
    for (size_t o = 1; o < 3; ++o) context.set_output(o, TensorType(statistics));
    return Status::ok();
  }
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", -1), x->dims.rank()));
  EDDY_RETURN_IF_ERROR(check_broadcasts_to(context, 1, "Scale", x->dims));
  EDDY_RETURN_IF_ERROR(check_broadcasts_to(context, 2, "B", x->dims));
  Dims reduced = x->dims;
  for (int i = axis; i < reduced.rank(); ++i) reduced[i] = 1;
  for (size_t o = 1; o < 3; ++o) context.set_output(o, TensorType(statistics, reduced));
  return Status::ok();
}

// The result has the scale's element type.
Status infer_rms_normalization(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const int64_t stash = context.attributes().get_int("stash_type", 1);
  if (stash != 1 && stash != 11) {
    return unsupported("stash_type must be 1 (float) or 11 (double), not " + std::to_string(stash));
  }
  TensorType y = *x;
  y.element = context.input(1).tensor.element;
  context.set_output(0, y);
  if (!x->is_ranked) return Status::ok();
  const int64_t axis = context.attributes().get_int("axis", -1);
  EDDY_RETURN_IF_ERROR(normalize_axis(axis, x->dims.rank()).status());
  return check_broadcasts_to(context, 1, "scale", x->dims);
}

Status infer_lrn(InferContext& context) {
  const TensorType* x;
  int64_t channels;
  EDDY_RETURN_IF_ERROR(read_channels(context, "LRN", x, channels));
  const int64_t size = context.attributes().get_int("size", 1);
  if (size < 1) {
    return invalid_argument("size of LRN must be at least 1, not " + std::to_string(size));
  }
  context.set_output(0, *x);
  return Status::ok();
}

// Each channel is scaled by numbers of its own, or reads its neighbours.
Status batch_channels(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  if (context.axis(0) == 1) return crosses_samples("takes for channels", 1);
  if (context.attributes().get_int("training_mode", 0) != 0) {
    return unsupported("finds one mean and variance for all samples (training_mode)");
  }
  context.set_outputs(context.input(0));
  return Status::ok();
}

// Scale and B are aligned with X's last axes.
Status expect_apart(const BatchContext& context, size_t i) {
  if (!context.has_input(i)) return Status::ok();
  const int place = context.axis(0) - (context.rank(0) - context.rank(i));
  if (place < 0 || context.dims(i)[place] == 1) return Status::ok();
  return crosses_samples("has a scale or bias for each entry of", context.axis(0));
}

Status batch_layer_normalization(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", -1), context.rank(0)));
  if (context.axis(0) >= axis) return crosses_samples("normalizes", context.axis(0));
  EDDY_RETURN_IF_ERROR(expect_apart(context, 1));
  EDDY_RETURN_IF_ERROR(expect_apart(context, 2));
  context.set_outputs(context.input(0));
  return Status::ok();
}

OpDef batch_normalization(int since_version, int max_outputs) {
  return {.name = "BatchNormalization",
          .since_version = since_version,
          .inputs = {in("X", kFloatTypes), in("scale", kFloatTypes), in("B", kFloatTypes),
                     in("input_mean", kFloatTypes), in("input_var", kFloatTypes)},
          .max_outputs = max_outputs,
          .attributes = {attribute("epsilon", kFloat), attribute("momentum", kFloat),
                         until(8, flag("spatial")), until(6, flag("is_test")), consumed_inputs(),
                         since(14, flag("training_mode"))},
          .infer = infer_batch_normalization,
          .batch = batch_channels};
}

}  // namespace

Status add_normalization_schemas(OpTable& table) {
  return add_schemas(
      table, {batch_normalization(1, 5),
              batch_normalization(14, 3),
              {.name = "InstanceNormalization",
               .since_version = 1,
               .inputs = {in("input", kFloatTypes), in("scale", kFloatTypes), in("B", kFloatTypes)},
               .attributes = {attribute("epsilon", kFloat), consumed_inputs()},
               .infer = infer_instance_normalization,
               .batch = batch_images},
              {.name = "LayerNormalization",
               .since_version = 17,
               .inputs = {in("X", kFloatTypes), in("Scale", kFloatTypes),
                          in("B", kFloatTypes, InputFlag::kOptional)},
               .max_outputs = 3,
               .attributes = {attribute("axis", kInt), attribute("epsilon", kFloat),
                              attribute("stash_type", kInt)},
               .infer = infer_layer_normalization,
               .batch = batch_layer_normalization},
              {.name = "RMSNormalization",
               .since_version = 23,
               .inputs = {in("X", kFloatTypes), in("scale", kFloatTypes)},
               .attributes = {attribute("axis", kInt), attribute("epsilon", kFloat),
                              attribute("stash_type", kInt)},
               .infer = infer_rms_normalization,
               .batch = batch_layer_normalization},
              {.name = "LRN",
               .inputs = {in("X", kFloatTypes)},
               .attributes = {attribute("alpha", kFloat), attribute("beta", kFloat),
                              attribute("bias", kFloat), attribute("size", kInt, true)},
               .infer = infer_lrn,
               .batch = batch_channels}});
}

}  // namespace eddy
