// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss as functions: scores [N, C, ...] and a
// class for each of [N, ...].
#include <string>

#include "graph/ir/expansion.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kIndexTypes = {ElementType::kInt32, ElementType::kInt64};

// scores [N, C, ...], classes [N, ...], weights [C].
Status check_shapes(const InferContext& context, const TensorType& scores,
                    const TensorType& classes) {
  if (!scores.is_ranked) return Status::ok();
  const Dims& x = scores.dims;
  if (x.rank() < 2) {
    return invalid_argument("the scores must have at least 2 dimensions, not " + to_string(x));
  }
  if (classes.is_ranked) {
    const Dims& t = classes.dims;
    bool fits = t.rank() == x.rank() - 1;
    for (int i = 0; fits && i < t.rank(); ++i) {
      fits = merge_dim(t[i], x[i == 0 ? 0 : i + 1]).has_value();
    }
    if (!fits) {
      return invalid_argument("the classes of shape " + to_string(t) +
                              " are not one for each place of the scores of shape " + to_string(x));
    }
  }
  return expect_shape(context, 2, "weights", {{x[1], "classes"}});
}

Status infer_loss(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* scores, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* classes, tensor_input(context, 1));
  if (context.has_input(2) && context.input(2).tensor.element != scores->element) {
    return invalid_argument("the weights must have the scores' element type");
  }
  EDDY_RETURN_IF_ERROR(check_shapes(context, *scores, *classes));
  const std::string_view reduction = context.attributes().get_string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    return invalid_argument("reduction must be none, sum or mean, not '" + std::string(reduction) +
                            "'");
  }
  const bool is_reduced = reduction != "none";
  context.set_output(
      0, is_reduced ? TensorType(scores->element, Dims{}) : TensorType(scores->element));
  context.set_output(1, *scores);
  return Status::ok();
}

// What counts and how much, for each place.
struct Targets {
  Value classes;     // where ignored: 0
  Value is_ignored;  // none: no class is
  Value weights;     // none: all count the same
};

// The same value, which a run refuses where its elements are not as many as the sizes say.
Value sized(Expansion& e, Value value, Value sizes) {
  return e.op("Reshape", {value, sizes}, {{"allowzero", int64_t{1}}});
}

Targets read_targets(Expansion& e, ElementType element) {
  Targets targets{e.input(1), {}, {}};
  if (e.attributes().has("ignore_index")) {
    const ElementType of = e.element(e.input(1));
    const int64_t ignored = e.attributes().get_int("ignore_index", 0);
    const bool may_occur = of == ElementType::kInt64 || ignored == static_cast<int32_t>(ignored);
    if (may_occur) {
      const Value number = e.cast(e.integer(ignored), of);
      targets.is_ignored = e.op("Equal", {e.input(1), number});
      targets.classes = e.op("Where", {targets.is_ignored, e.number(of, 0), e.input(1)});
    }
  }
  if (e.has_input(2)) {
    const Value weights = sized(e, e.input(2), e.sizes(e.input(0), 1, 2));
    targets.weights = e.op("Gather", {weights, targets.classes});
  }
  if (!targets.is_ignored.is_none()) {
    const Value counted = targets.weights.is_none() ? e.number(element, 1) : targets.weights;
    targets.weights = e.op("Where", {targets.is_ignored, e.number(element, 0), counted});
  }
  return targets;
}

// One of the logarithms for each place. GatherElements takes fewer places than there are, too.
Value pick_classes(Expansion& e, Value logarithms, Value classes) {
  const Value axis = e.int64s({1});
  const Value picked = e.op("GatherElements", {logarithms, e.op("Unsqueeze", {classes, axis})},
                            {{"axis", int64_t{1}}});
  const Value samples = e.op("Shape", {logarithms}, {{"end", int64_t{1}}});
  const Value places = e.op("Shape", {logarithms}, {{"start", int64_t{2}}});
  return sized(e, e.op("Squeeze", {picked, axis}),
               e.op("Concat", {samples, places}, {{"axis", int64_t{0}}}));
}

// The loss of logarithms of probabilities.
void set_loss(Expansion& e, Value logarithms) {
  const ElementType element = e.element(logarithms);
  const Targets targets = read_targets(e, element);
  Value loss = e.op("Neg", {pick_classes(e, logarithms, targets.classes)});
  if (!targets.weights.is_none()) loss = e.op("Mul", {loss, targets.weights});
  if (!targets.is_ignored.is_none()) {  // also where the logarithm is infinite
    loss = e.op("Where", {targets.is_ignored, e.number(element, 0), loss});
  }
  const Attributes to_scalar = {{"keepdims", int64_t{0}}};
  const std::string_view reduction = e.attributes().get_string("reduction", "mean");
  if (reduction == "sum") {
    loss = e.op("ReduceSum", {loss}, to_scalar);
  } else if (reduction == "mean" && targets.weights.is_none()) {
    loss = e.op("ReduceMean", {loss}, to_scalar);
  } else if (reduction == "mean") {
    const Value total = e.op("ReduceSum", {targets.weights}, to_scalar);
    loss = e.op("Div", {e.op("ReduceSum", {loss}, to_scalar), total});
  }
  e.set_output(0, loss);
}

void expand_negative_log_likelihood(Expansion& e) { set_loss(e, e.input(0)); }

void expand_softmax_cross_entropy(Expansion& e) {
  const Value logarithms = e.op("LogSoftmax", {e.input(0)}, {{"axis", int64_t{1}}});
  set_loss(e, logarithms);
  e.set_output(1, logarithms);
}

OpDef loss(const char* name, int max_outputs, ExpandFunction expand) {
  return {.name = name,
          .since_version = 12,
          .inputs = {in("scores", kFloatTypes), in("classes", kIndexTypes),
                     in("weights", kFloatTypes, InputFlag::kOptional)},
          .max_outputs = max_outputs,
          .attributes = {attribute("ignore_index", kInt), attribute("reduction", kString)},
          .infer = infer_loss,
          .expand = expand};
}

}  // namespace

Status add_loss_functions(OpTable& table) {
  return add_schemas(table, {loss("NegativeLogLikelihoodLoss", 1, expand_negative_log_likelihood),
                             loss("SoftmaxCrossEntropyLoss", 2, expand_softmax_cross_entropy)});
}

}  // namespace eddy
