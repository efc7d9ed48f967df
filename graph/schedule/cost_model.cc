#include "graph/schedule/cost_model.h"

#include <algorithm>

namespace eddy {
namespace {

constexpr double kFlopsPerNs = 20;
constexpr double kBytesPerNs = 8;

double elements(const ValueType& type) {
  if (!type.is_tensor() || !type.tensor.is_ranked) return static_cast<double>(kGuessedDim);
  double product = 1;
  for (int64_t dim : type.tensor.dims.span()) {
    product *= static_cast<double>(dim >= 0 ? dim : kGuessedDim);
  }
  return product;
}

double bytes(const ValueType& type) {
  return elements(type) * static_cast<double>(element_size_bytes(type.tensor.element));
}

double exec_flops(const Graph& graph, const Node& node) {
  std::vector<const ValueType*> inputs;
  bool is_static = true;
  double work = 0;
  for (ValueId value : node.inputs) {
    inputs.push_back(value.is_none() ? nullptr : &graph.value(value).type);
    is_static &= value.is_none() || graph.value(value).type.tensor.is_static();
  }
  std::vector<ValueType> outputs;
  for (ValueId value : node.outputs) {
    outputs.push_back(graph.value(value).type);
    is_static &= outputs.back().tensor.is_static();
    work += elements(outputs.back());
  }
  if (node.op->flops == nullptr || !is_static) return work;
  const std::vector<const TensorView*> values(inputs.size(), nullptr);
  std::vector<ValueType> unused(outputs.size());
  return node.op->flops(InferContext(node.attributes, inputs, values, unused, node.opset_version),
                        outputs);
}

double exec_cost_ns(const Graph& graph, const Node& node) {
  if (node.op->is_view) return kLaunchNs;
  double moved_bytes = 0;
  for (ValueId value : node.inputs) {
    if (!value.is_none()) moved_bytes += bytes(graph.value(value).type);
  }
  for (ValueId value : node.outputs) moved_bytes += bytes(graph.value(value).type);
  return kLaunchNs + std::max(exec_flops(graph, node) / kFlopsPerNs, moved_bytes / kBytesPerNs);
}

}  // namespace

std::vector<double> estimate_costs_ns(const Graph& graph) {
  std::vector<double> costs(graph.num_nodes(), 0);
  std::vector<double> regions(graph.num_regions(), 0);
  // Inner nodes have larger ids than the control node that owns them.
  for (uint32_t n = static_cast<uint32_t>(graph.num_nodes()); n-- > 0;) {
    const Node& node = graph.node(NodeId(n));
    double cost = kLaunchNs;
    if (node.kind == NodeKind::kExec) cost = exec_cost_ns(graph, node);
    if (node.kind == NodeKind::kWhile) {
      for (RegionId region : node.regions) cost += kGuessedTrips * regions[region.index()];
    }
    if (node.kind == NodeKind::kCaseOf) {
      double dearest = 0;
      for (RegionId region : node.regions) dearest = std::max(dearest, regions[region.index()]);
      cost += dearest;
    }
    costs[n] = cost;
    regions[node.region.index()] += cost;
  }
  return costs;
}

}  // namespace eddy
