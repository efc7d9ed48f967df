#include "ops/gradient/training_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

constexpr const char* kGradientSuffix = ".grad";
constexpr const char* kNextSuffix = ".next";

OwnedTensor copy_of(const Constant& constant) {
  const size_t size = constant.view().size_bytes();
  OwnedTensor tensor{constant.element, constant.dims, std::make_unique<std::byte[]>(size)};
  if (size > 0) std::memcpy(tensor.bytes.get(), constant.data, size);
  return tensor;
}

OwnedTensor zeros_like(const OwnedTensor& other) {
  const size_t size = other.view().size_bytes();
  return {other.element, other.dims, std::make_unique<std::byte[]>(size)};  // all bytes 0
}

Status check_options(const TrainingOptions& options) {
  const auto is_fraction = [](double x) { return x >= 0 && x < 1; };
  if (!is_fraction(options.momentum) || !is_fraction(options.beta1) ||
      !is_fraction(options.beta2)) {
    return invalid_argument("momentum, beta1 and beta2 must lie in [0, 1)");
  }
  if (!(options.epsilon > 0)) return invalid_argument("epsilon must be positive");
  if (!(options.clip_norm >= 0) || std::isinf(options.clip_norm)) {
    return invalid_argument("clip_norm must be a positive number, or 0 for none");
  }
  return Status::ok();
}

// One parameter while its update is written.
struct Updated {
  std::string name;
  Value old;
  Value gradient;
  ElementType element = ElementType::kFloat;
};

// Copies the gradient's graph and writes the updates behind it.
class StepBuilder : public GraphCopier {
 public:
  StepBuilder(const Graph& source, GraphBuilder& builder, const TrainingOptions& options,
              TrainingStep& step)
      : GraphCopier(source, builder), options_(options), step_(step) {}

  void run() {
    for (const ValueId id : source_.inputs()) {
      inputs_[source_.value(id).name] = id;
      define(id, builder_.input(source_.value(id).name, input_type(source_.value(id))));
    }
    rate_ = builder_.input(step_.rate, tensor_type(ElementType::kFloat, {}));
    if (!step_.step.empty()) {
      count_ = builder_.input(step_.step, tensor_type(ElementType::kInt64, {}));
    }
    nodes(Graph::kRoot);
    const size_t num_gradients = step_.report.gradients.size();
    const size_t num_plain = source_.outputs().size() - num_gradients;
    for (size_t i = 0; i < num_plain; ++i) {
      builder_.output(source_.output_names()[i], value(source_.outputs()[i]));
    }
    std::vector<Updated> all;
    for (size_t i = 0; i < num_gradients; ++i) {
      const std::string& name = step_.report.gradients[i].parameter;
      const ValueId input = inputs_.at(name);
      all.push_back({name, value(input), value(source_.outputs()[num_plain + i]),
                     source_.value(input).type.tensor.element});
    }
    if (options_.clip_norm > 0) clip(all);
    for (const Updated& parameter : all) update(parameter);
  }

 private:
  Value op(std::string_view name, std::initializer_list<Value> inputs, Attributes attributes = {}) {
    return builder_.op(name, inputs, std::move(attributes), {.name = "step/" + std::string(name)});
  }
  Value number(double value, ElementType element) {
    return element == ElementType::kDouble
               ? builder_.scalar(value)
               : cast(builder_.scalar(static_cast<float>(value)), element);
  }
  Value cast(Value value, ElementType element) {
    if (builder_.type(value).tensor.element == element) return value;
    return builder_.cast(value, element);
  }
  Value times(double factor, Value value, const Updated& of) {
    return op("Mul", {value, number(factor, of.element)});
  }
  Value square(Value value) { return op("Mul", {value, value}); }

  // All gradients times min(1, clip_norm / norm of all).
  void clip(std::vector<Updated>& all) {
    const ElementType wide = ElementType::kDouble;
    Value sum;
    for (const Updated& of : all) {
      const Value part =
          cast(op("ReduceSumSquare", {of.gradient}, {{"keepdims", int64_t{0}}}), wide);
      sum = sum.is_none() ? part : op("Add", {sum, part});
    }
    const Value fraction = op("Div", {number(options_.clip_norm, wide), op("Sqrt", {sum})});
    const Value factor = op("Min", {number(1, wide), fraction});
    for (Updated& of : all) of.gradient = op("Mul", {of.gradient, cast(factor, of.element)});
  }

  // A state of the parameter: an input that starts as zeros.
  Value state(const Updated& of, const char* what) {
    TrainingBinding binding{of.name + "." + what, of.name + "." + what + kNextSuffix,
                            zeros_like(initial(of)), false};
    const Value input =
        builder_.input(binding.input, tensor_type(of.element, binding.initial.dims));
    step_.bindings.push_back(std::move(binding));
    return input;
  }
  const OwnedTensor& initial(const Updated& of) const {
    return std::ranges::find(step_.bindings, of.name, &TrainingBinding::input)->initial;
  }
  void set_state(Value next) { builder_.output(step_.bindings.back().output, next); }

  void update(const Updated& of) {
    const Value rate = cast(rate_, of.element);
    Value change;  // times the rate
    switch (options_.optimizer) {
      case Optimizer::kSgd:
        change = of.gradient;
        break;
      case Optimizer::kMomentum:
      case Optimizer::kNesterov:
        change = with_momentum(of);
        break;
      case Optimizer::kAdagrad:
        change = over_root(of, of.gradient, accumulated(of, "squares", 1, 1));
        break;
      case Optimizer::kAdam:
        change = adam(of);
        break;
    }
    builder_.output(of.name + kNextSuffix, op("Sub", {of.old, op("Mul", {rate, change})}));
  }

  Value with_momentum(const Updated& of) {
    const Value before = state(of, "momentum");
    const Value after = op("Add", {times(options_.momentum, before, of), of.gradient});
    set_state(after);
    if (options_.optimizer == Optimizer::kMomentum) return after;
    return op("Add", {of.gradient, times(options_.momentum, after, of)});
  }

  // keeps * h + share * g * g, as a state.
  Value accumulated(const Updated& of, const char* what, double keeps, double share) {
    const Value before = state(of, what);
    const Value kept = keeps == 1 ? before : times(keeps, before, of);
    const Value added = square(of.gradient);
    const Value after = op("Add", {kept, share == 1 ? added : times(share, added, of)});
    set_state(after);
    return after;
  }
  Value over_root(const Updated& of, Value value, Value squares) {
    const Value below = op("Add", {op("Sqrt", {squares}), number(options_.epsilon, of.element)});
    return op("Div", {value, below});
  }

  Value adam(const Updated& of) {
    const Value before = state(of, "mean");
    const Value mean =
        op("Add", {times(options_.beta1, before, of), times(1 - options_.beta1, of.gradient, of)});
    set_state(mean);
    const Value squares = accumulated(of, "squares", options_.beta2, 1 - options_.beta2);
    return op("Mul", {cast(correction(), of.element), over_root(of, mean, squares)});
  }

  // sqrt(1 - beta2^step) / (1 - beta1^step); once for all parameters.
  Value correction() {
    if (!correction_.is_none()) return correction_;
    const ElementType wide = ElementType::kDouble;
    const Value count = cast(count_, wide);
    const auto left = [&](double beta) {
      return op("Sub", {number(1, wide), op("Pow", {number(beta, wide), count})});
    };
    correction_ = op("Div", {op("Sqrt", {left(options_.beta2)}), left(options_.beta1)});
    return correction_;
  }

  const TrainingOptions& options_;
  TrainingStep& step_;
  std::unordered_map<std::string, ValueId> inputs_;
  Value rate_, count_, correction_;
};

// The parameters' values, before the graph that has them goes.
Result<std::vector<TrainingBinding>> parameters_of(const Graph& graph) {
  std::vector<TrainingBinding> found;
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    const bool is_named = info.origin == ValueOrigin::kConstant && !info.name.empty();
    if (!is_named || !kFloatTypes.contains(info.type.tensor.element)) continue;
    found.push_back(
        {info.name, info.name + kNextSuffix, copy_of(graph.constant(info.constant)), true});
  }
  if (!found.empty()) return found;
  return invalid_argument("the model has no named initializers of floating-point type to train");
}

// The name, with a prime for each time it is taken.
std::string free_name(const Graph& graph, std::string name) {
  const auto is_taken = [&](ValueId input) { return graph.value(input).name == name; };
  while (std::ranges::any_of(graph.inputs(), is_taken)) name += "'";
  return name;
}

}  // namespace

std::optional<Optimizer> optimizer_by_name(std::string_view name) {
  if (name == "sgd") return Optimizer::kSgd;
  if (name == "momentum") return Optimizer::kMomentum;
  if (name == "nesterov") return Optimizer::kNesterov;
  if (name == "adam") return Optimizer::kAdam;
  if (name == "adagrad") return Optimizer::kAdagrad;
  return std::nullopt;
}

Result<TrainingStep> make_training_step(Graph graph, const OpTable& ops, const GradientTable& rules,
                                        const TrainingOptions& options) {
  EDDY_RETURN_IF_ERROR(check_options(options));
  EDDY_ASSIGN_OR_RETURN(std::vector<TrainingBinding> known, parameters_of(graph));
  DifferentiateOptions request{.loss = options.loss, .wrt = options.wrt, .stop = options.stop};
  request.initializers_become_inputs = true;
  request.suffix = kGradientSuffix;
  if (request.wrt.empty()) {
    EDDY_ASSIGN_OR_RETURN(request.wrt, initializers_behind(graph, rules, request));
  }
  std::vector<TrainingBinding> bindings;
  for (const std::string& name : request.wrt) {
    const auto at = std::ranges::find(known, name, &TrainingBinding::input);
    if (at == known.end()) {
      return invalid_argument("'" + name +
                              "' is no initializer of floating-point type, so it can't be trained");
    }
    bindings.push_back(std::move(*at));
    known.erase(at);
  }
  EDDY_ASSIGN_OR_RETURN(GradientGraph gradient,
                        differentiate(std::move(graph), ops, rules, request));
  TrainingStep step{gradient.graph.copy(),
                    std::move(bindings),
                    std::move(gradient.report),
                    options.loss,
                    free_name(gradient.graph, "rate"),
                    ""};
  if (options.optimizer == Optimizer::kAdam) step.step = free_name(gradient.graph, "step");
  GraphBuilder builder(ops, gradient.graph.name());
  StepBuilder(gradient.graph, builder, options, step).run();
  builder.adopt_blobs_of(std::move(gradient.graph));
  EDDY_ASSIGN_OR_RETURN(step.graph, builder.finish());
  return step;
}

}  // namespace eddy
