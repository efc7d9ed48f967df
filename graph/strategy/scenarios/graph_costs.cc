#include "graph/strategy/scenarios/graph_costs.h"

#include <utility>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/strategy/operators/part_cost.h"

namespace eddy {

const std::string& GraphCosts::name(const Graph& graph, NodeId node) const {
  if (graph.node(node).kind != NodeKind::kExec) return controls.at(node).name;
  const RegionCosts& region = regions[graph.node(node).region.index()];
  return region.operators.operators[numbers[node.index()]].name;
}

void GraphCosts::add_operator(const Graph& graph, NodeId node, Operator op,
                              const std::vector<ValueId>& sources,
                              const std::vector<Dims>& shapes) {
  const RegionId id = graph.node(node).region;
  RegionCosts& region = regions[id.index()];
  const auto number = static_cast<uint32_t>(region.nodes.size());
  numbers[node.index()] = number;
  region.nodes.push_back(node);
  EDDY_CHECK(sources.size() == shapes.size() && sources.size() == op.inputs.size())
      << op.name << " reads " << sources.size() << " tensors of " << shapes.size() << " shapes";
  std::vector<OperatorInput> inner;
  for (size_t i = 0; i < sources.size(); ++i) {
    const ValueInfo& source = graph.value(sources[i]);
    const bool is_inner = source.region == id && source.origin == ValueOrigin::kNodeOutput &&
                          graph.node(source.producer).kind == NodeKind::kExec;
    if (is_inner) {
      EDDY_CHECK(numbers[source.producer.index()] < number) << op.name << " reads a later one";
      inner.push_back({numbers[source.producer.index()], op.inputs[i].dims});
    } else {
      region.outer_inputs.push_back({number, sources[i], shapes[i], op.inputs[i].dims});
    }
  }
  op.inputs = std::move(inner);
  region.operators.operators.push_back(std::move(op));
}

void GraphCosts::add_control(const Graph& graph, NodeId node, ControlCosts costs) {
  std::vector<NodeId>& list = regions[graph.node(node).region.index()].controls;
  numbers[node.index()] = static_cast<uint32_t>(list.size());
  list.push_back(node);
  const bool is_new = controls.emplace(node, std::move(costs)).second;
  EDDY_CHECK(is_new) << graph.node(node).name << " has its costs";
}

ValueId source_of(const Graph& graph, ValueId value) {
  if (value.is_none()) return value;
  value = resolve_forwarded(graph, value);
  const ValueInfo& info = graph.value(value);
  if (info.origin == ValueOrigin::kNodeOutput) return graph.node(info.producer).outputs[0];
  return is_carried(graph, value) ? value : ValueId();
}

std::vector<ValueId> sources_of(const Graph& graph, const Node& node) {
  std::vector<ValueId> sources;
  for (const ValueId input : node.inputs) {
    const ValueId source = source_of(graph, input);
    if (!source.is_none()) sources.push_back(source);
  }
  return sources;
}

size_t num_branches(const Node& node) {
  const bool may_pass = node.kind == NodeKind::kCaseOf && node.default_region < 0;
  return node.regions.size() + (may_pass ? 1 : 0);
}

namespace {

void add_estimated(const Graph& graph, const GraphCosts& costs, RegionId region,
                   std::vector<std::string>& names) {
  for (const Operator& op : costs.regions[region.index()].operators.operators) {
    if (is_estimated(op)) names.push_back(op.name);
  }
  for (const NodeId control : costs.regions[region.index()].controls) {
    for (const RegionId inner : graph.node(control).regions) {
      add_estimated(graph, costs, inner, names);
    }
  }
}

}  // namespace

std::vector<std::string> estimated_operators(const Graph& graph, const GraphCosts& costs) {
  std::vector<std::string> names;
  add_estimated(graph, costs, Graph::kRoot, names);
  return names;
}

}  // namespace eddy
