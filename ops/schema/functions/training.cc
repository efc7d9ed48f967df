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
// Per tensor they are elementwise chains. What depends on R and T alone is built once a node.
#include <climits>
#include <string>

#include "graph/ir/expansion.h"
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

// The node's tensors, and the numbers of its attributes in their type.
class Update {
 public:
  Update(Expansion& e, size_t kinds) : e_(e), n_((e.num_inputs() - kFirstTensor) / kinds) {}

  size_t num_tensors() const { return n_; }
  Value x(size_t i) const { return e_.input(kFirstTensor + i); }
  Value state(size_t i, size_t which) const {
    return e_.input(kFirstTensor + (2 + which) * n_ + i);
  }
  void set_x(size_t i, Value value) { e_.set_output(i, value); }
  void set_state(size_t i, size_t which, Value value) { set((1 + which) * n_ + i, value); }

  double attribute(const char* name, float fallback) const {
    return e_.attributes().get_float(name, fallback);
  }
  Value op(const char* name, std::initializer_list<Value> inputs) { return e_.op(name, inputs); }
  Value number(size_t i, double value) { return e_.number(e_.element(x(i)), value); }
  Value times(size_t i, double factor, Value value) {
    return factor == 1 ? value : op("Mul", {value, number(i, factor)});
  }
  // A scalar in the tensor's type.
  Value like(size_t i, Value scalar) { return e_.cast(scalar, e_.element(x(i))); }

  Value rate() const { return rate_.is_none() ? e_.input(0) : rate_; }
  void set_rate(Value rate) { rate_ = rate; }

  // With the slope of norm_coefficient / 2 times the square of the tensor's norm.
  Value gradient(size_t i) {
    const Value plain = e_.input(kFirstTensor + n_ + i);
    const double norm = attribute("norm_coefficient", 0);
    return norm == 0 ? plain : op("Add", {times(i, norm, x(i)), plain});
  }
  // x less rate * direction.
  Value moved(size_t i, Value direction) {
    return op("Sub", {x(i), op("Mul", {like(i, rate()), direction})});
  }
  Value over_root(size_t i, Value above, Value squares) {
    const double epsilon = attribute("epsilon", 1e-6f);
    return op("Div", {above, op("Add", {op("Sqrt", {squares}), number(i, epsilon)})});
  }

 private:
  void set(size_t output, Value value) {
    if (e_.wants(output)) e_.set_output(output, value);
  }
  Expansion& e_;
  size_t n_;
  Value rate_;
};

Value squared(Update& u, Value value) { return u.op("Mul", {value, value}); }

Value count_of(Expansion& e) { return e.cast(e.input(1), ElementType::kDouble); }
Value wide(Expansion& e, double value) { return e.number(ElementType::kDouble, value); }

void expand_adagrad(Expansion& e) {
  Update u(e, 3);
  const double decay = u.attribute("decay_factor", 0);
  if (decay != 0) {
    const Value slower = e.op("Mul", {count_of(e), wide(e, decay)});
    const Value rate = e.cast(e.input(0), ElementType::kDouble);
    u.set_rate(e.op("Div", {rate, e.op("Add", {wide(e, 1), slower})}));
  }
  for (size_t i = 0; i < u.num_tensors(); ++i) {
    const Value gradient = u.gradient(i);
    const Value squares = u.op("Add", {u.state(i, 0), squared(u, gradient)});
    u.set_state(i, 0, squares);
    u.set_x(i, u.moved(i, u.over_root(i, gradient, squares)));
  }
}

// R sqrt(1 - beta^T) / (1 - alpha^T); R itself where T is 0.
Value corrected_rate(Expansion& e, double alpha, double beta) {
  const Value count = count_of(e);
  const Value is_first = e.op("Equal", {count, wide(e, 0)});
  const auto left = [&](double keeps) {
    const Value kept = e.op("Pow", {wide(e, keeps), count});
    return e.op("Where", {is_first, wide(e, 1), e.op("Sub", {wide(e, 1), kept})});
  };
  const Value factor = e.op("Div", {e.op("Sqrt", {left(beta)}), left(alpha)});
  return e.op("Mul", {e.cast(e.input(0), ElementType::kDouble), factor});
}

void expand_adam(Expansion& e) {
  Update u(e, 4);
  const double alpha = u.attribute("alpha", 0.9f);
  const double beta = u.attribute("beta", 0.999f);
  const double shrinks = u.attribute("norm_coefficient_post", 0);
  u.set_rate(corrected_rate(e, alpha, beta));
  for (size_t i = 0; i < u.num_tensors(); ++i) {
    const Value gradient = u.gradient(i);
    const Value mean =
        u.op("Add", {u.times(i, alpha, u.state(i, 0)), u.times(i, 1 - alpha, gradient)});
    const Value squares =
        u.op("Add", {u.times(i, beta, u.state(i, 1)), u.times(i, 1 - beta, squared(u, gradient))});
    u.set_state(i, 0, mean);
    u.set_state(i, 1, squares);
    u.set_x(i, u.times(i, 1 - shrinks, u.moved(i, u.over_root(i, mean, squares))));
  }
}

void expand_momentum(Expansion& e) {
  Update u(e, 3);
  const double alpha = u.attribute("alpha", 0);
  const double beta = u.attribute("beta", 0);
  const std::string_view mode = e.attributes().get_string("mode", "");
  if (mode != "standard" && mode != "nesterov") {
    return e.fail(
        invalid_argument("mode must be standard or nesterov, not '" + std::string(mode) + "'"));
  }
  Value share;  // of the gradient: beta, but 1 in the first update
  if (beta != 1) {
    const Value is_first = e.op("Equal", {count_of(e), wide(e, 0)});
    share = e.op("Where", {is_first, wide(e, 1), wide(e, beta)});
  }
  for (size_t i = 0; i < u.num_tensors(); ++i) {
    const Value gradient = u.gradient(i);
    const Value added = share.is_none() ? gradient : u.op("Mul", {u.like(i, share), gradient});
    const Value momentum = u.op("Add", {u.times(i, alpha, u.state(i, 0)), added});
    u.set_state(i, 0, momentum);
    const bool looks_ahead = mode == "nesterov";
    u.set_x(i, u.moved(i, looks_ahead ? u.op("Add", {gradient, u.times(i, alpha, momentum)})
                                      : momentum));
  }
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
