#include "tools/bench/seeded_weights.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "graph/base/random.h"
#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

// What a parameter is drawn from; an empty range keeps its value.
struct Bounds {
  float low = 0;
  float high = 0;
  bool is_empty() const { return low == high; }
};

bool is_made_of_shape(const Graph& graph, ValueId id) {
  const ValueInfo& value = graph.value(id);
  if (value.origin != ValueOrigin::kNodeOutput || value.region != Graph::kRoot) return false;
  const Node& node = graph.node(value.producer);
  return node.kind == NodeKind::kExec && node.op->name == "ConstantOfShape";
}

bool changes_shape(std::string_view op) {
  return op == "Reshape" || op == "Unsqueeze" || op == "Squeeze" || op == "Flatten" ||
         op == "Identity";
}

class Roles {
 public:
  explicit Roles(const Graph& graph) : graph_(graph), uses_(graph.num_values()) {
    for (const NodeId id : graph.root().nodes) {
      const std::vector<ValueId>& inputs = graph.node(id).inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].is_none()) uses_[inputs[i].index()].push_back({id, i});
      }
    }
  }

  // By the first reader that tells.
  Bounds bounds_of(ValueId value) const {
    for (const Use& use : uses_[value.index()]) {
      const Node& node = graph_.node(use.node);
      if (node.kind != NodeKind::kExec) continue;
      const bool is_passed_on = changes_shape(node.op->name) && use.input == 0;
      const Bounds found = is_passed_on ? bounds_of(node.outputs[0]) : bounds_in(node, use.input);
      if (!found.is_empty()) return found;
    }
    return {};
  }

 private:
  struct Use {
    NodeId node;
    size_t input;
  };

  Bounds bounds_in(const Node& node, size_t input) const {
    const std::string_view op = node.op->name;
    const Dims& dims = graph_.value(node.inputs[input]).type.tensor.dims;
    constexpr Bounds kOffset = {-0.1f, 0.1f};
    if (op == "Mul") return factor(node);
    if (op == "Add") return kOffset;
    if (op == "BatchNormalization") {
      if (input == 0) return {};
      return input == 1 ? factor(node) : input == 4 ? Bounds{0.5f, 1.5f} : kOffset;
    }
    if ((op == "Conv" || op == "Gemm") && input == 2) return kOffset;
    if (input != 1 || dims.rank() < 2) return {};
    if (op == "Conv") return weight(dims.count().value_or(0) / std::max<int64_t>(dims[0], 1));
    if (op == "Gemm") {
      const int64_t fan_in = dims[node.attributes.get_int("transB", 0) != 0 ? 1 : 0];
      return weight(ends_in_softmax(node.outputs[0]) ? 2 * fan_in * fan_in : fan_in);
    }
    return op == "MatMul" ? weight(dims[dims.rank() - 2]) : Bounds();
  }

  // Weights are then those of a mean: sums of what many branches have added to would leave one
  // score of 1, or let the last bits of one decide.
  bool ends_in_softmax(ValueId value) const {
    return std::ranges::any_of(uses_[value.index()], [&](const Use& use) {
      const Node& node = graph_.node(use.node);
      if (node.kind != NodeKind::kExec) return false;
      if (node.op->name == "Softmax") return true;
      return changes_shape(node.op->name) && ends_in_softmax(node.outputs[0]);
    });
  }

  static Bounds weight(int64_t fan_in) {
    if (fan_in <= 0) return {};
    const float bound = std::sqrt(6.0f / static_cast<float>(fan_in));
    return {-bound, bound};
  }

  Bounds factor(const Node& node) const {
    return joins_a_branch(node.outputs[0]) ? Bounds{0.25f, 0.75f} : Bounds{0.5f, 1.5f};
  }

  // Whether the value is added to another one that is no parameter, perhaps behind parameters'
  // factors and offsets.
  bool joins_a_branch(ValueId value) const {
    for (const Use& use : uses_[value.index()]) {
      const Node& node = graph_.node(use.node);
      if (node.kind != NodeKind::kExec) continue;
      const std::string_view op = node.op->name;
      if (op == "Sum" && node.inputs.size() > 1) return true;
      if (op != "Add" && op != "Mul") continue;
      const bool is_parameter = is_from_shape(node.inputs[1 - use.input]);
      if (op == "Add" && !is_parameter) return true;
      if (is_parameter && joins_a_branch(node.outputs[0])) return true;
    }
    return false;
  }

  bool is_from_shape(ValueId value) const {
    if (is_made_of_shape(graph_, value)) return true;
    const ValueInfo& info = graph_.value(value);
    if (info.origin != ValueOrigin::kNodeOutput) return false;
    const Node& node = graph_.node(info.producer);
    return node.kind == NodeKind::kExec && changes_shape(node.op->name) &&
           is_from_shape(node.inputs[0]);
  }

  const Graph& graph_;
  std::vector<std::vector<Use>> uses_;  // in the root, by value
};

// By node; those that keep their value are empty.
std::vector<Bounds> all_bounds(const Graph& graph) {
  const Roles roles(graph);
  std::vector<Bounds> all(graph.num_nodes());
  for (const NodeId id : graph.root().nodes) {
    const Node& node = graph.node(id);
    if (node.outputs.empty() || !is_made_of_shape(graph, node.outputs[0])) continue;
    const ValueType& type = graph.value(node.outputs[0]).type;
    const bool is_drawn = type.is_static_tensor() && type.tensor.element == ElementType::kFloat &&
                          type.tensor.dims.count().value_or(0) > 0;
    if (is_drawn) all[id.index()] = roles.bounds_of(node.outputs[0]);
  }
  return all;
}

class Seeder : public GraphCopier {
 public:
  Seeder(const Graph& source, GraphBuilder& builder, const std::vector<Bounds>& bounds,
         uint64_t seed)
      : GraphCopier(source, builder), bounds_(bounds), seed_(seed) {}

 protected:
  void exec(NodeId id) override {
    const Bounds& from = bounds_[id.index()];
    if (from.is_empty()) return copy_exec(id);
    const ValueInfo& made = source_.value(source_.node(id).outputs[0]);
    const Dims& dims = made.type.tensor.dims;
    Random random(seed_ + id.index());
    std::vector<float> drawn(static_cast<size_t>(*dims.count()));
    for (float& each : drawn) each = random.uniform(from.low, from.high);
    define(source_.node(id).outputs[0],
           builder_.constant({drawn.data(), dims.data(), dims.rank(), ElementType::kFloat},
                             made.name));
  }

 private:
  const std::vector<Bounds>& bounds_;
  const uint64_t seed_;
};

}  // namespace

Result<std::optional<Graph>> seeded_weights(const OpTable& ops, Graph graph, uint64_t seed) {
  const std::vector<Bounds> bounds = all_bounds(graph);
  bool has_parameters = false;
  for (const Bounds& each : bounds) has_parameters |= !each.is_empty();
  if (!has_parameters) return std::optional<Graph>();
  GraphBuilder builder(ops, graph.name());
  Seeder(graph, builder, bounds, seed).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph made, builder.finish());
  return std::optional<Graph>(std::move(made));
}

}  // namespace eddy
