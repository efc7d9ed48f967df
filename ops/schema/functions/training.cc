// Adagrad, Adam and Momentum of domain ai.onnx.preview.training as functions: a rate R, a count T
// of updates before, and any number of tensors with their gradients and states, each group in the
// tensors' order:
//
//   Adagrad    R, T, x..., gradients..., squares...           -> x..., squares...
//   Adam       R, T, x..., gradients..., means..., squares... -> x..., means..., squares...
//   Momentum   R, T, x..., gradients..., momenta...           -> x..., momenta...
//
// Gradient has no function: graph/differentiate/expand_gradients replaces it, by the whole graph.
//
// Per tensor they are one UpdateParameter (ops/schema/eddy/update_form.h), which may begin once the
// tensor's gradient is there. What depends on R and T alone is built once a node.
#include <climits>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/eddy/update_parameter.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr const char* kTrainingDomain = "ai.onnx.preview.training";
constexpr size_t kFirstTensor = 2;  // behind R and T

// Inputs `first` and `other` are one tensor and what belongs to it.
Status expect_alike(const InferContext& context, size_t first, size_t other) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* a, tensor_input(context, first));
  EDDY_ASSIGN_OR_RETURN(const TensorType* b, tensor_input(context, other));
  bool fits = a->element == b->element;
  if (fits && a->is_ranked && b->is_ranked) {
    fits = a->dims.rank() == b->dims.rank();
    for (int i = 0; fits && i < a->dims.rank(); ++i) {
      fits = merge_dim(a->dims[i], b->dims[i]).has_value();
    }
  }
  if (fits) return Status::ok();
  return invalid_argument("inputs " + std::to_string(first) + " and " + std::to_string(other) +
                          " belong to one tensor, so they must have one type and shape, not " +
                          to_string(*a) + " and " + to_string(*b));
}

// kinds: groups of inputs; all but the gradients come out again.
Status infer_update(InferContext& context, size_t kinds) {
  EDDY_RETURN_IF_ERROR(expect_one_element(context, 0, "R"));
  EDDY_RETURN_IF_ERROR(expect_one_element(context, 1, "T"));
  const size_t num_behind = context.num_inputs() - kFirstTensor;
  const size_t n = num_behind / kinds;
  if (n * kinds != num_behind) {
    return invalid_argument("R and T must be followed by n x " + std::to_string(kinds) +
                            " tensors, not by " + std::to_string(num_behind));
  }
  if (context.num_outputs() > n * (kinds - 1)) {
    return invalid_argument(std::to_string(n) + " tensors have " + std::to_string(n * (kinds - 1)) +
                            " outputs, not " + std::to_string(context.num_outputs()));
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t kind = 1; kind < kinds; ++kind) {
      EDDY_RETURN_IF_ERROR(expect_alike(context, kFirstTensor + i, kFirstTensor + kind * n + i));
    }
  }
  for (size_t output = 0; output < context.num_outputs(); ++output) {
    context.set_output(output, context.input(kFirstTensor + output % n).tensor);
  }
  return Status::ok();
}

Status infer_with_one_state(InferContext& context) { return infer_update(context, 3); }
Status infer_with_two_states(InferContext& context) { return infer_update(context, 4); }

double attribute_of(const Expansion& e, const char* name, float fallback) {
  return e.attributes().get_float(name, fallback);
}

// Each tensor's step as one node, with these numbers for all.
struct Update {
  UpdateRule rule;
  size_t kinds;  // groups of inputs
  Attributes numbers;
  Value rate;
  Value share = {};
};

void expand_update(Expansion& e, Update update) {
  const size_t n = (e.num_inputs() - kFirstTensor) / update.kinds;
  update.numbers.set("rule", to_string(update.rule));
  for (size_t i = 0; i < n; ++i) {
    const auto input = [&](size_t kind) { return e.input(kFirstTensor + kind * n + i); };
    const ElementType element = e.element(input(0));
    const auto like = [&](Value scalar) {
      return scalar.is_none() ? scalar : e.cast(scalar, element);
    };
    std::vector<Value> inputs = {like(update.rate), like(update.share)};
    for (size_t kind = 0; kind < update.kinds; ++kind) inputs.push_back(input(kind));
    const size_t results = update.kinds - 1;
    const auto made =
        e.eddy_ops("UpdateParameter", inputs, update.numbers, static_cast<int>(results));
    for (size_t kind = 0; kind < results; ++kind) e.set_output(kind * n + i, made[kind]);
  }
}

// Those of the node that UpdateParameter has, too.
Attributes numbers_of(const Expansion& e,
                      std::initializer_list<std::pair<const char*, float>> all) {
  Attributes numbers;
  for (const auto& [name, fallback] : all) {
    numbers.set(name, e.attributes().get_float(name, fallback));
  }
  return numbers;
}

Value count_of(Expansion& e) { return e.cast(e.input(1), ElementType::kDouble); }
Value wide(Expansion& e, double value) { return e.number(ElementType::kDouble, value); }
Value is_first(Expansion& e) { return e.op("Equal", {count_of(e), wide(e, 0)}); }

void expand_adagrad(Expansion& e) {
  Value rate = e.input(0);
  if (const double decay = attribute_of(e, "decay_factor", 0); decay != 0) {
    const Value slower = e.op("Mul", {count_of(e), wide(e, decay)});
    rate = e.op("Div", {e.cast(rate, ElementType::kDouble), e.op("Add", {wide(e, 1), slower})});
  }
  expand_update(e, {UpdateRule::kAdagrad, 3,
                    numbers_of(e, {{"epsilon", 1e-6f}, {"norm_coefficient", 0.0f}}), rate});
}

// R sqrt(1 - beta^T) / (1 - alpha^T); R itself where T is 0.
Value corrected_rate(Expansion& e, double alpha, double beta) {
  const Value count = count_of(e);
  const auto left = [&](double keeps) {
    const Value kept = e.op("Pow", {wide(e, keeps), count});
    return e.op("Where", {is_first(e), wide(e, 1), e.op("Sub", {wide(e, 1), kept})});
  };
  const Value factor = e.op("Div", {e.op("Sqrt", {left(beta)}), left(alpha)});
  return e.op("Mul", {e.cast(e.input(0), ElementType::kDouble), factor});
}

void expand_adam(Expansion& e) {
  const Value rate =
      corrected_rate(e, attribute_of(e, "alpha", 0.9f), attribute_of(e, "beta", 0.999f));
  expand_update(e, {UpdateRule::kAdam, 4,
                    numbers_of(e, {{"alpha", 0.9f},
                                   {"beta", 0.999f},
                                   {"epsilon", 1e-6f},
                                   {"norm_coefficient", 0.0f},
                                   {"norm_coefficient_post", 0.0f}}),
                    rate});
}

void expand_momentum(Expansion& e) {
  const std::string_view mode = e.attributes().get_string("mode", "");
  if (mode != "standard" && mode != "nesterov") {
    return e.fail(
        invalid_argument("mode must be standard or nesterov, not '" + std::string(mode) + "'"));
  }
  Value share;  // of the gradient: beta, but 1 in the first update
  if (const double beta = attribute_of(e, "beta", 0); beta != 1) {
    share = e.op("Where", {is_first(e), wide(e, 1), wide(e, beta)});
  }
  expand_update(e,
                {mode == "nesterov" ? UpdateRule::kNesterov : UpdateRule::kMomentum, 3,
                 numbers_of(e, {{"alpha", 0.0f}, {"norm_coefficient", 0.0f}}), e.input(0), share});
}

// A gradient has the type of what it is taken for.
Status infer_gradient(InferContext& context) {
  const size_t num_xs = context.attributes().get_strings("xs").size();
  if (num_xs == 0 || num_xs > context.num_inputs() || context.num_outputs() > num_xs) {
    return invalid_argument("xs names " + std::to_string(num_xs) + " tensors for " +
                            std::to_string(context.num_inputs()) + " inputs and " +
                            std::to_string(context.num_outputs()) + " outputs");
  }
  for (size_t i = 0; i < context.num_outputs(); ++i) context.set_output(i, context.input(i));
  return Status::ok();
}

OpDef update(const char* name, std::vector<FormalAttribute> attributes, InferFunction infer,
             ExpandFunction expand) {
  return {.name = name,
          .domain = kTrainingDomain,
          .inputs = {in("R", kFloatTypes), in("T", {ElementType::kInt64}),
                     in("tensors", kFloatTypes, InputFlag::kVariadic)},
          .max_outputs = INT_MAX,
          .attributes = std::move(attributes),
          .infer = infer,
          .expand = expand};
}

}  // namespace

Status add_training_functions(OpTable& table) {
  return add_schemas(
      table,
      {update("Adagrad",
              {attribute("decay_factor", kFloat), attribute("epsilon", kFloat),
               attribute("norm_coefficient", kFloat)},
              infer_with_one_state, expand_adagrad),
       update("Adam",
              {attribute("alpha", kFloat), attribute("beta", kFloat), attribute("epsilon", kFloat),
               attribute("norm_coefficient", kFloat), attribute("norm_coefficient_post", kFloat)},
              infer_with_two_states, expand_adam),
       {.name = "Gradient",
        .domain = kTrainingDomain,
        .inputs = {in("inputs", kAllTypes, InputFlag::kVariadic)},
        .max_outputs = INT_MAX,
        .attributes = {attribute("xs", kStrings, true), attribute("y", kString, true),
                       attribute("zs", kStrings)},
        .infer = infer_gradient},
       update("Momentum",
              {attribute("alpha", kFloat, true), attribute("beta", kFloat, true),
               attribute("mode", kString, true), attribute("norm_coefficient", kFloat, true)},
              infer_with_one_state, expand_momentum)});
}

}  // namespace eddy
