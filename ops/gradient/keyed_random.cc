#include "ops/gradient/keyed_random.h"

#include <algorithm>
#include <numbers>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/text_hash.h"
#include "graph/differentiate/copy_parameters.h"
#include "graph/ir/control_view.h"
#include "graph/ir/expansion.h"

namespace eddy {
namespace {

constexpr ElementType kFloat = ElementType::kFloat, kDouble = ElementType::kDouble;

const Constant* constant_or_null(const Graph& graph, const Node& node, size_t input) {
  if (input >= node.inputs.size() || node.inputs[input].is_none()) return nullptr;
  const ValueInfo& info = graph.value(node.inputs[input]);
  return info.origin == ValueOrigin::kConstant ? &graph.constant(info.constant) : nullptr;
}

bool has_input(const Node& node, size_t i) {
  return i < node.inputs.size() && !node.inputs[i].is_none();
}

bool may_drop(const Graph& graph, const Node& node) {
  const int version = node.op->since_version;
  if (version < 7) return node.attributes.get_int("is_test", 0) == 0;
  if (version < 12 || !has_input(node, 2)) return false;
  const Constant* training = constant_or_null(graph, node, 2);
  return training == nullptr || *training->view().as<bool>();
}

bool is_replaced(const Graph& graph, const Node& node) {
  if (node.kind != NodeKind::kExec || !node.op->domain.empty()) return false;
  const std::string& op = node.op->name;
  if (op == "Dropout") return may_drop(graph, node);
  return op.starts_with("Random") || op == "Bernoulli" || op == "Multinomial";
}

class KeyRandom : public ParameterCopier {
 public:
  KeyRandom(const Graph& source, GraphBuilder& builder, const KeyOptions& options)
      : ParameterCopier(source, builder), options_(options) {}

  void add_key() {
    seed_ = builder_.scalar(static_cast<int64_t>(options_.seed));
    if (options_.step.empty()) return;
    step_ = builder_.input(options_.step, tensor_type(ElementType::kInt64, {}));
  }

 protected:
  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    if (!is_replaced(source_, node)) return copy_exec(id);
    EDDY_DCHECK(!seed_.is_none()) << "numbers are drawn before add_key()";
    name_ = node.name;
    opset_ = std::max(node.opset_version, Expansion::kOldestInner);
    const std::string& op_name = node.op->name;
    std::vector<Value> made(node.outputs.size());
    if (op_name == "Dropout") {
      drop(id, made);
    } else if (op_name == "Multinomial") {
      made[0] = draw_classes(id);
    } else if (op_name == "Bernoulli") {
      made[0] = toss(id);
    } else {
      made[0] = draw(id);
    }
    if (builder_.status().is_ok()) replace(id, made);
  }

 private:
  Value op(std::string_view op_name, std::initializer_list<Value> inputs,
           Attributes attributes = {}) {
    return builder_.op(op_name, inputs, std::move(attributes),
                       {.name = name_ + "/" + std::string(op_name), .opset_version = opset_});
  }
  Value eddy_op(std::string_view op_name, std::span<const Value> inputs,
                Attributes attributes = {}) {
    return builder_.op(op_name, inputs, std::move(attributes),
                       {.name = name_ + "/" + std::string(op_name), .domain = "eddy"});
  }
  Value cast(Value value, ElementType element) {
    if (builder_.type(value).tensor.element == element) return value;
    return op("Cast", {value}, {{"to", static_cast<int64_t>(element)}});
  }
  Value number(double value, ElementType element) {
    if (element == kDouble) return builder_.scalar(value);
    return cast(builder_.scalar(static_cast<float>(value)), element);
  }
  static ElementType drawn_type(ElementType element) {
    return element == kDouble ? kDouble : kFloat;
  }
  ElementType element_of(ValueId id) const { return source_.value(id).type.tensor.element; }

  // `which` of the node's own keys.
  Value key(NodeId id, int64_t which = 0) {
    const Node& node = source_.node(id);
    std::vector<Value> numbers;
    for (RegionId at = node.region; at != Graph::kRoot;) {
      if (role(source_, at) != RegionRole::kBranch) {
        numbers.push_back(value(source_.region(at).parameters[0]));
      }
      at = source_.node(source_.region(at).owner).region;
    }
    if (!step_.is_none()) numbers.push_back(step_);
    numbers.push_back(seed_);
    std::ranges::reverse(numbers);  // the seed first, the innermost loop's iteration last
    const AttributeValue* seed = node.attributes.find_or_null("seed");
    const std::string name =
        seed == nullptr ? "node " + source_.path(id)
                        : "seed " + std::to_string(node.op->name == "Dropout"
                                                       ? double(node.attributes.get_int("seed", 0))
                                                       : node.attributes.get_float("seed", 0));
    numbers.push_back(builder_.scalar(static_cast<int64_t>(text_hash(name)) + which));
    return eddy_op("FoldKey", numbers);
  }

  // In [0, 1); of the shape of `like`, or of the node's attribute.
  Value uniform(NodeId id, Value like, ElementType element, int64_t which = 0) {
    Attributes attributes = {{"dtype", static_cast<int64_t>(element)}};
    std::vector<Value> inputs = {key(id, which)};
    if (like.is_none()) {
      const AttributeValue* const shape = source_.node(id).attributes.find_or_null("shape");
      EDDY_CHECK(shape != nullptr) << name_ << " draws like nothing, in no shape";
      attributes.set("shape", *shape);
    } else {
      inputs.push_back(like);
    }
    return eddy_op("KeyedUniform", inputs, std::move(attributes));
  }

  Value draw(NodeId id) {
    const Node& node = source_.node(id);
    const ElementType to = element_of(node.outputs[0]), wide = drawn_type(to);
    const Value like = has_input(node, 0) ? value(node.inputs[0]) : Value{};
    const Value first = uniform(id, like, wide);
    if (node.op->name.starts_with("RandomUniform")) {
      const double low = node.attributes.get_float("low", 0);
      const double high = node.attributes.get_float("high", 1);
      const Value scaled = op("Mul", {first, number(high - low, wide)});
      return cast(op("Add", {scaled, number(low, wide)}), to);
    }
    const Value angle = op("Mul", {uniform(id, like, wide, 1), number(2 * std::numbers::pi, wide)});
    const Value logarithm = op("Log", {op("Sub", {number(1, wide), first})});
    const Value radius = op("Sqrt", {op("Mul", {number(-2, wide), logarithm})});
    const Value normal = op("Mul", {radius, op("Cos", {angle})});
    const Value scaled = op("Mul", {normal, number(node.attributes.get_float("scale", 1), wide)});
    return cast(op("Add", {scaled, number(node.attributes.get_float("mean", 0), wide)}), to);
  }

  // 1 with the element's probability, else 0.
  Value toss(NodeId id) {
    const Node& node = source_.node(id);
    const Value x = value(node.inputs[0]);
    const ElementType wide = drawn_type(element_of(node.inputs[0]));
    return cast(op("Less", {uniform(id, x, wide), cast(x, wide)}), element_of(node.outputs[0]));
  }

  // How many of the sums of weights a uniform part of their total passes.
  Value draw_classes(NodeId id) {
    const Node& node = source_.node(id);
    const Value x = cast(value(node.inputs[0]), kDouble);
    const int64_t samples = node.attributes.get_int("sample_size", 1);
    const auto axis = [&](int64_t i) { return builder_.int64s({i}); };
    const Value rows = op("Shape", {x}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
    const Value shape = builder_.op("Concat", {rows, axis(samples)}, {{"axis", int64_t{0}}},
                                    {.name = name_ + "/Concat", .opset_version = opset_});
    const Value like = op("ConstantOfShape", {shape});
    const Value weights = op("Softmax", {x}, {{"axis", int64_t{1}}});
    const Value sums = op("CumSum", {weights, builder_.scalar(int64_t{1})});
    const Value passed = op(
        "LessOrEqual",
        {op("Unsqueeze", {sums, axis(1)}), op("Unsqueeze", {uniform(id, like, kDouble), axis(2)})});
    const Value counted =
        op("ReduceSum", {cast(passed, ElementType::kInt64), axis(2)}, {{"keepdims", int64_t{0}}});
    const Value classes = op("Shape", {x}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
    const Value last = op("Sub", {classes, builder_.int64s({1})});  // where sums end below 1
    return cast(op("Min", {counted, last}), element_of(node.outputs[0]));
  }

  void drop(NodeId id, std::vector<Value>& made) {
    const Node& node = source_.node(id);
    const Value x = value(node.inputs[0]);
    const ElementType element = element_of(node.inputs[0]), wide = drawn_type(element);
    const Value ratio = has_input(node, 1) ? cast(value(node.inputs[1]), wide)
                                           : number(node.attributes.get_float("ratio", 0.5f), wide);
    Value keep = op("GreaterOrEqual", {uniform(id, x, wide), ratio});
    const Value rest = op("Sub", {number(1, wide), ratio});
    const Value scaled = op("Div", {x, cast(rest, element)});
    made[0] = op("Where", {keep, scaled, number(0, element)});
    if (node.op->since_version >= 12 && constant_or_null(source_, node, 2) == nullptr) {
      const Value training = value(node.inputs[2]);
      made[0] = op("Where", {training, made[0], x});
      keep = op("Or", {keep, op("Not", {training})});
    }
    if (made.size() < 2) return;
    made[1] = cast(keep, element_of(node.outputs[1]));
  }

  const KeyOptions& options_;
  Value seed_, step_;
  std::string name_;  // of the node that is replaced
  int opset_ = 0;
};

}  // namespace

bool draws_by_key(const Graph& graph) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (is_replaced(graph, graph.node(NodeId(n)))) return true;
  }
  return false;
}

Result<Graph> key_random_numbers(Graph graph, const OpTable& ops, const KeyOptions& options) {
  GraphBuilder builder(ops, graph.name());
  KeyRandom copier(graph, builder, options);
  copier.add_key();
  copier.run();
  EDDY_RETURN_IF_ERROR(builder.status());
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace eddy
