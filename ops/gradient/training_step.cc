#include "ops/gradient/training_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/differentiate/expand_gradients.h"
#include "ops/gradient/keyed_random.h"
#include "ops/schema/eddy/update_parameter.h"

namespace eddy {
namespace {

constexpr const char* kGradientSuffix = ".grad";
constexpr const char* kNextSuffix = ".next";

OwnedTensor copy_of(const Constant& constant) {
  const size_t size = constant.view().size_bytes();
  EDDY_CHECK(size == 0 || constant.data != nullptr) << "an initializer whose bytes were released";
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

// ONNX's operator of an optimizer (ops/schema/functions/training.cc), and its states in order.
struct UpdateForm {
  const char* op;
  Attributes attributes;
  std::vector<const char*> states;
};

UpdateForm update_form(const TrainingOptions& options) {
  const auto number = [](double value) { return static_cast<float>(value); };
  const float epsilon = number(options.epsilon);
  switch (options.optimizer) {
    case Optimizer::kAdam:
      return {
          "Adam",
          {{"alpha", number(options.beta1)}, {"beta", number(options.beta2)}, {"epsilon", epsilon}},
          {"mean", "squares"}};
    case Optimizer::kAdagrad:
      return {"Adagrad", {{"epsilon", epsilon}}, {"squares"}};
    default:
      return {"Momentum",
              {{"alpha", number(options.momentum)},
               {"beta", 1.0f},
               {"mode", options.optimizer == Optimizer::kNesterov ? "nesterov" : "standard"},
               {"norm_coefficient", 0.0f}},
              {"momentum"}};
  }
}

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
    if (inputs_.contains(step_.step)) {
      count_ = value(inputs_.at(step_.step));
    } else if (!step_.step.empty()) {
      count_ = builder_.input(step_.step, tensor_type(ElementType::kInt64, {}));
    }
    nodes(Graph::kRoot);
    const size_t num_gradients = step_.report.gradients.size();
    EDDY_DCHECK(source_.outputs().size() >= num_gradients)
        << source_.outputs().size() << " outputs with " << num_gradients << " gradients";
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
    if (options_.optimizer == Optimizer::kSgd) {
      for (const Updated& of : all) descend(of);
    } else {
      for (const ElementType element : {ElementType::kFloat, ElementType::kDouble,
                                        ElementType::kFloat16, ElementType::kBfloat16})
        update(all, element);
    }
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

  // All gradients times min(1, clip_norm / norm of all).
  void clip(std::vector<Updated>& all) {
    EDDY_DCHECK(!all.empty()) << "a norm of no gradients";
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

  const OwnedTensor& initial(const Updated& of) const {
    const auto at = std::ranges::find(step_.bindings, of.name, &TrainingBinding::input);
    EDDY_CHECK(at != step_.bindings.end()) << "'" << of.name << "' starts with nothing";
    return at->initial;
  }

  void descend(const Updated& of) {
    const Value next =
        builder_.op("UpdateParameter", {cast(rate_, of.element), Value{}, of.old, of.gradient},
                    {{"rule", to_string(UpdateRule::kDescent)}},
                    {.name = "step/descent", .domain = "eddy", .opset_version = 1});
    builder_.output(of.name + kNextSuffix, next);
  }

  // One node for all parameters of the type: it computes once what they share.
  void update(const std::vector<Updated>& all, ElementType element) {
    std::vector<const Updated*> those;
    for (const Updated& of : all) {
      if (of.element == element) those.push_back(&of);
    }
    if (those.empty()) return;
    const UpdateForm form = update_form(options_);
    std::vector<Value> inputs = {rate_, count_.is_none() ? builder_.scalar(int64_t{1}) : count_};
    for (const Updated* of : those) inputs.push_back(of->old);
    for (const Updated* of : those) inputs.push_back(of->gradient);
    std::vector<std::string> next;
    for (const Updated* of : those) next.push_back(of->name + kNextSuffix);
    for (const char* what : form.states) {
      for (const Updated* of : those) {
        const std::string name = of->name + "." + what;
        TrainingBinding binding{name, name + kNextSuffix, zeros_like(initial(*of)), false};
        inputs.push_back(builder_.input(name, tensor_type(element, binding.initial.dims)));
        next.push_back(binding.output);
        step_.bindings.push_back(std::move(binding));
      }
    }
    const auto outputs = builder_.ops(form.op, inputs, form.attributes,
                                      {.name = "step/" + std::string(form.op),
                                       .domain = "ai.onnx.preview.training",
                                       .num_outputs = static_cast<int>(next.size())});
    EDDY_DCHECK(outputs.size() == next.size() || !builder_.status().is_ok())
        << form.op << " has " << outputs.size() << " outputs of " << next.size();
    for (size_t i = 0; i < outputs.size(); ++i) builder_.output(next[i], outputs[i]);
  }

  const TrainingOptions& options_;
  TrainingStep& step_;
  std::unordered_map<std::string, ValueId> inputs_;
  Value rate_, count_;
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
  EDDY_ASSIGN_OR_RETURN(graph, expand_gradients(std::move(graph), ops, rules));
  EDDY_ASSIGN_OR_RETURN(std::vector<TrainingBinding> known, parameters_of(graph));
  DifferentiateOptions request{.loss = options.loss, .wrt = options.wrt, .stop = options.stop};
  request.initializers_become_inputs = true;
  request.suffix = kGradientSuffix;
  request.save = options.save;
  request.exact = options.exact;
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
  const std::string step_name = free_name(graph, "step");
  const bool has_step = options.optimizer == Optimizer::kAdam || draws_by_key(graph);
  if (draws_by_key(graph)) {
    EDDY_ASSIGN_OR_RETURN(graph, key_random_numbers(std::move(graph), ops,
                                                    {.seed = options.seed, .step = step_name}));
  }
  EDDY_ASSIGN_OR_RETURN(GradientGraph gradient,
                        differentiate(std::move(graph), ops, rules, request));
  EDDY_DCHECK(gradient.report.gradients.size() == bindings.size())
      << gradient.report.gradients.size() << " gradients of " << bindings.size() << " parameters";
  TrainingStep step{gradient.graph.copy(),
                    std::move(bindings),
                    std::move(gradient.report),
                    options.loss,
                    free_name(gradient.graph, "rate"),
                    has_step ? step_name : ""};
  GraphBuilder builder(ops, gradient.graph.name());
  StepBuilder(gradient.graph, builder, options, step).run();
  builder.adopt_blobs_of(std::move(gradient.graph));
  EDDY_ASSIGN_OR_RETURN(step.graph, builder.finish());
  return step;
}

}  // namespace eddy
