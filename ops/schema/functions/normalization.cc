// GroupNormalization, LpNormalization and MeanVarianceNormalization as functions.
#include <string>

#include "graph/ir/expansion.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

// Output 0 is as input 0, which has at least `least` dimensions.
Status infer_ranked(InferContext& context, std::string_view op, int least) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  if (x->is_ranked && x->dims.rank() < least) {
    return invalid_argument("X of " + std::string(op) + " must have at least " +
                            std::to_string(least) + " dimensions, not " + to_string(x->dims));
  }
  context.set_output(0, *x);
  return Status::ok();
}

// Scale and bias hold a value for each group before opset 21, then one for each channel.
Status infer_group_normalization(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 3));
  EDDY_RETURN_IF_ERROR(infer_ranked(context, "GroupNormalization", 2));
  const int64_t groups = context.attributes().get_int("num_groups", 1);
  if (groups < 1) {
    return invalid_argument("num_groups must be at least 1, not " + std::to_string(groups));
  }
  const TensorType& x = context.input(0).tensor;
  const int64_t channels = x.is_ranked ? x.dims[1] : kUnknownDim;
  if (channels >= 0 && channels % groups != 0) {
    return invalid_argument(std::to_string(channels) + " channels do not fall into " +
                            std::to_string(groups) + " groups");
  }
  const int64_t expected = context.opset_version() < 21 ? groups : channels;
  EDDY_RETURN_IF_ERROR(expect_shape(context, 1, "scale", {{expected, "channels"}}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 2, "bias", {{expected, "channels"}}));
  const int64_t stash = context.attributes().get_int("stash_type", 1);
  if (stash == 1) return Status::ok();
  return unsupported("stash_type must be 1 (float), not " + std::to_string(stash));
}

// [N, groups, channels of each, elements of each channel]: channels whose number is known only in a
// run, and is no multiple of the groups', do not fit.
Value group_channels(Expansion& e, Value x, int rank, int64_t groups) {
  const Value elements = e.op("ReduceProd", {e.sizes(x, 2, rank)});   // of one dimension
  const Value at_least_one = e.op("Max", {elements, e.int64s({1})});  // 0 would copy a size
  const Value sizes = e.op("Concat", {e.int64s({0, groups, -1}), at_least_one}, {{"axis", 0}});
  return e.op("Reshape", {x, sizes});
}

// The groups are the channels of an InstanceNormalization over the rest of each.
void expand_group_normalization(Expansion& e) {
  const int rank = e.rank_or_fail(e.input(0), "X");
  if (rank < 0) return;
  const int64_t groups = e.attributes().get_int("num_groups", 1);
  const ElementType element = e.element(e.input(0));
  const Attributes epsilon = {{"epsilon", e.attributes().get_float("epsilon", 1e-5f)}};
  const Value grouped = group_channels(e, e.input(0), rank, groups);
  const bool is_by_group = e.opset_version() < 21;
  Value scale = e.input(1), bias = e.input(2);
  if (!is_by_group) {
    const Value size = e.int64s({groups});
    scale = e.op("Expand", {e.number(element, 1), size});
    bias = e.op("Expand", {e.number(element, 0), size});
  }
  const Value normal = e.op("InstanceNormalization", {grouped, scale, bias}, epsilon);
  const Value back = e.op("Reshape", {normal, e.shape(e.input(0))});
  if (is_by_group) return e.set_output(0, back);
  std::vector<int64_t> axes;  // after the channel's
  for (int64_t axis = 1; axis < rank - 1; ++axis) axes.push_back(axis);
  const auto by_channel = [&](Value value) {
    return axes.empty() ? value : e.op("Unsqueeze", {value, e.int64s(axes)});
  };
  const Value scaled = e.op("Mul", {back, by_channel(e.input(1))});
  e.set_output(0, e.op("Add", {scaled, by_channel(e.input(2))}));
}

Status infer_lp_normalization(InferContext& context) {
  EDDY_RETURN_IF_ERROR(infer_ranked(context, "LpNormalization", 0));
  const int64_t p = context.attributes().get_int("p", 2);
  if (p != 1 && p != 2) return invalid_argument("p must be 1 or 2, not " + std::to_string(p));
  const TensorType& x = context.input(0).tensor;
  if (!x.is_ranked) return Status::ok();
  return normalize_axis(context.attributes().get_int("axis", -1), x.dims.rank()).status();
}

// A line of zeros stays zeros.
void expand_lp_normalization(Expansion& e) {
  const Value x = e.input(0);
  const Value axes = e.int64s({e.attributes().get_int("axis", -1)});
  const bool is_sum = e.attributes().get_int("p", 2) == 1;
  const Value norm = e.op(is_sum ? "ReduceL1" : "ReduceL2", {x, axes});
  const Value is_zero = e.op("Equal", {norm, e.number(e.element(x), 0)});
  const Value divisor = e.op("Where", {is_zero, e.number(e.element(x), 1), norm});
  e.set_output(0, e.op("Div", {x, divisor}));
}

Status infer_mean_variance(InferContext& context) {
  EDDY_RETURN_IF_ERROR(infer_ranked(context, "MeanVarianceNormalization", 0));
  const TensorType& x = context.input(0).tensor;
  if (!x.is_ranked) return Status::ok();
  static constexpr int64_t kDefault[] = {0, 2, 3};
  const bool is_given = context.attributes().has("axes");
  const auto axes = is_given ? context.attributes().get_ints("axes") : std::span(kDefault);
  return axes_mask(axes, x.dims.rank()).status();
}

// (X - mean) / (deviation + 1e-9)
void expand_mean_variance(Expansion& e) {
  constexpr double kEpsilon = 1e-9;
  const Value x = e.input(0);
  const bool is_given = e.attributes().has("axes");
  const Value axes = is_given ? e.int64s(e.attributes().get_ints("axes")) : e.int64s({0, 2, 3});
  const Value centred = e.op("Sub", {x, e.op("ReduceMean", {x, axes})});
  const Value variance = e.op("ReduceMean", {e.op("Mul", {centred, centred}), axes});
  const Value deviation = e.op("Add", {e.op("Sqrt", {variance}), e.number(e.element(x), kEpsilon)});
  e.set_output(0, e.op("Div", {centred, deviation}));
}

OpDef group_normalization(int since_version) {
  return {.name = "GroupNormalization",
          .since_version = since_version,
          .inputs = {in("X", kFloatTypes), in("scale", kFloatTypes), in("bias", kFloatTypes)},
          .attributes = {attribute("epsilon", kFloat), attribute("num_groups", kInt, true),
                         since(21, attribute("stash_type", kInt))},
          .infer = infer_group_normalization,
          .expand = expand_group_normalization};
}

}  // namespace

Status add_normalization_functions(OpTable& table) {
  return add_schemas(table, {group_normalization(18),
                             group_normalization(21),
                             {.name = "LpNormalization",
                              .since_version = 1,
                              .inputs = {in("input", kFloatTypes)},
                              .attributes = {attribute("axis", kInt), attribute("p", kInt)},
                              .infer = infer_lp_normalization,
                              .expand = expand_lp_normalization},
                             {.name = "MeanVarianceNormalization",
                              .since_version = 9,
                              .inputs = {in("X", kFloatTypes)},
                              .attributes = {attribute("axes", kInts)},
                              .infer = infer_mean_variance,
                              .expand = expand_mean_variance}});
}

}  // namespace eddy
