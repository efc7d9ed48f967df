#include "graph/schedule/costs/cost_model.h"

#include <algorithm>
#include <set>

#include "graph/base/check.h"
#include "graph/ir/node_facts.h"

namespace eddy {
namespace {

constexpr double kFlopsPerNs = 20;
// A node that moves more than a core's own cache holds finds little of it there.
constexpr double kBytesPerNs = 8;
constexpr double kCachedBytesPerNs = 64;
constexpr double kCachedBytes = 256 << 10;
// An operator of the user's that answers later waits for something: so long, for all one knows.
constexpr double kAnswerNs = 100'000;
constexpr const char* kDevice = "cpu";
constexpr size_t kNamedMissing = 5;

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
  EDDY_DCHECK(node.op != nullptr) << node.name << " is no exec node";
  bool is_static = true;
  double work = 0;
  for (ValueId value : node.inputs) {
    is_static &= value.is_none() || graph.value(value).type.tensor.is_static();
  }
  for (ValueId value : node.outputs) {
    is_static &= graph.value(value).type.tensor.is_static();
    work += elements(graph.value(value).type);
  }
  if (node.op->flops == nullptr || !is_static) return work;
  std::vector<const ValueType*> inputs;
  for (ValueId value : node.inputs) {
    inputs.push_back(value.is_none() ? nullptr : &graph.value(value).type);
  }
  std::vector<ValueType> outputs;
  for (ValueId value : node.outputs) outputs.push_back(graph.value(value).type);
  const std::vector<const TensorView*> values(inputs.size(), nullptr);
  std::vector<ValueType> unused(outputs.size());
  return node.op->flops(InferContext(node.attributes, inputs, values, unused, node.opset_version),
                        outputs);
}

double exec_cost_ns(const Graph& graph, const Node& node, const CostTable* table_or_null) {
  if (table_or_null != nullptr) {
    const MeasuredCost* measured = measured_cost_or_null(*table_or_null, graph, node);
    if (measured != nullptr) return measured->ns;
  }
  if (node.op->is_view) return kLaunchNs;
  if (node.op->may_wait && !has_effects(node)) return kAnswerNs;
  const NodeLoad load = exec_load(graph, node);
  const double bytes_per_ns = load.moved_bytes <= kCachedBytes ? kCachedBytesPerNs : kBytesPerNs;
  return kLaunchNs + std::max(load.flops / kFlopsPerNs, load.moved_bytes / bytes_per_ns);
}

double rounds_of(const Graph& graph, NodeId loop, const CostTable* table_or_null) {
  if (table_or_null == nullptr) return kGuessedTrips;
  const auto likely = table_or_null->distributions.find(graph.path(loop));
  if (likely != table_or_null->distributions.end()) {
    double mean = 0;
    for (const auto& [trips, probability] : likely->second) {
      mean += probability * static_cast<double>(std::max<int64_t>(0, trips));
    }
    return mean + 1;
  }
  const auto seen = table_or_null->decisions.find(graph.path(loop));
  if (seen == table_or_null->decisions.end()) return kGuessedTrips;
  EDDY_DCHECK(!seen->second.empty()) << "decisions of " << graph.path(loop) << " are none";
  double sum = 0;
  for (const int64_t trips : seen->second) sum += static_cast<double>(std::max<int64_t>(0, trips));
  return sum / static_cast<double>(seen->second.size()) + 1;
}

std::string missing_text(const Graph& graph, const Node& node) {
  const std::string shapes = cost_key(graph, node);
  return cost_op_name(*node.op) + " " + (shapes.empty() ? "of changing shape" : shapes);
}

}  // namespace

NodeLoad exec_load(const Graph& graph, const Node& node) {
  NodeLoad load;
  load.flops = exec_flops(graph, node);
  for (ValueId value : node.inputs) {
    if (!value.is_none()) load.moved_bytes += bytes(graph.value(value).type);
  }
  for (ValueId value : node.outputs) {
    load.moved_bytes += bytes(graph.value(value).type);
    load.num_outputs += elements(graph.value(value).type);
  }
  return load;
}

const MeasuredCost* measured_cost_or_null(const CostTable& table, const Graph& graph,
                                          const Node& node) {
  const std::string shapes = cost_key(graph, node);
  if (shapes.empty()) return nullptr;
  return table.find_or_null(cost_op_name(*node.op), shapes, kDevice);
}

std::vector<double> estimate_costs_ns(const Graph& graph, const CostTable* table_or_null) {
  std::vector<double> costs(graph.num_nodes(), 0);
  std::vector<double> regions(graph.num_regions(), 0);
  // Inner nodes have larger ids than the control node that owns them.
  for (uint32_t n = static_cast<uint32_t>(graph.num_nodes()); n-- > 0;) {
    const Node& node = graph.node(NodeId(n));
    double cost = kLaunchNs;
    if (node.kind == NodeKind::kExec) cost = exec_cost_ns(graph, node, table_or_null);
    if (node.kind == NodeKind::kWhile) {
      const double rounds = rounds_of(graph, NodeId(n), table_or_null);
      for (RegionId region : node.regions) cost += rounds * regions[region.index()];
    }
    if (node.kind == NodeKind::kCaseOf) {
      double dearest = 0;
      for (RegionId region : node.regions) dearest = std::max(dearest, regions[region.index()]);
      cost += dearest;
    }
    cost = std::min(cost, kMostNs);
    costs[n] = cost;
    regions[node.region.index()] += cost;
  }
  return costs;
}

CostCoverage cost_coverage(const Graph& graph, const CostTable& measured) {
  CostCoverage coverage;
  std::set<std::string> seen;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec) continue;
    if (measured_cost_or_null(measured, graph, node) != nullptr) {
      ++coverage.num_measured;
      continue;
    }
    ++coverage.num_estimated;
    if (seen.insert(missing_text(graph, node)).second) coverage.missing.push_back(NodeId(n));
  }
  return coverage;
}

std::string CostCoverage::text(const Graph& graph) const {
  if (num_estimated == 0) return "";
  std::string line = std::to_string(num_estimated) + " of " +
                     std::to_string(num_estimated + num_measured) +
                     " nodes are not in the table, so estimates stand for them: ";
  for (size_t i = 0; i < std::min(missing.size(), kNamedMissing); ++i) {
    line += (i == 0 ? "" : "; ") + missing_text(graph, graph.node(missing[i]));
  }
  if (missing.size() > kNamedMissing) {
    line += "; and " + std::to_string(missing.size() - kNamedMissing) + " more";
  }
  return line;
}

}  // namespace eddy
