#include "graph/strategy/operators/part_cost.h"

#include <cmath>

#include "graph/base/check.h"

namespace eddy {
namespace {

double count(const Dims& dims) {
  double product = 1;
  for (const int64_t dim : dims) product *= static_cast<double>(dim);
  return product;
}

Status missing_tile(const Operator& op, const std::string& tile) {
  std::string known;
  for (const auto& [name, _] : op.exe_by_tile) known += (known.empty() ? "" : ", ") + name;
  return invalid_argument("operator '" + op.name + "': exe_by_tile has no tile " + tile +
                          "; it has " + known);
}

}  // namespace

bool is_estimated(const Operator& op) { return op.exe_by_tile.empty() && op.measured < 0; }

PartCost::PartCost(const OperatorGraph& graph, const Topology& topology) : graph_(&graph) {
  const bool uses_estimates = std::ranges::any_of(graph.operators, is_estimated);
  for (uint32_t i = 0; i < topology.num_nodes(); ++i) {
    const DeviceSpec& spec = topology.node(i);
    const bool is_known = spec.flops > 0 && spec.memory_rate > 0;
    uses_assumed_rates_ |= uses_estimates && !is_known && !spec.is_switch;
    rates_.push_back({spec.launch, 1 / (spec.flops > 0 ? spec.flops : kAssumedFlops),
                      1 / (spec.memory_rate > 0 ? spec.memory_rate : kAssumedMemoryRate)});
  }
}

Result<PartCost::Work> PartCost::work(uint32_t index, const OperatorConfig& config) const {
  const Operator& op = graph_->operators[index];
  EDDY_DCHECK(config.num_parts() > 0) << op.name << " has no parts";
  const double parts = static_cast<double>(config.num_parts());
  Work work;
  work.backward_factor = op.weight_elements > 0 ? 2 : 1;
  if (!op.exe_by_tile.empty()) {
    const std::string tile = tile_name(tile_of(op, config));
    const auto found = op.exe_by_tile.find(tile);
    if (found == op.exe_by_tile.end()) return missing_tile(op, tile);
    if (!(std::isfinite(found->second) && found->second >= 0)) {
      return invalid_argument("operator '" + op.name + "': the time of tile " + tile +
                              " must be a finite number >= 0");
    }
    work.fixed = found->second;
    return work;
  }
  if (op.measured >= 0) {
    work.fixed = op.measured / parts;
    return work;
  }
  double weight_cuts = static_cast<double>(config.reduce);
  for (int d = 0; d < op.shape.rank(); ++d) {
    if ((op.weight_axes >> d & 1) != 0) weight_cuts *= static_cast<double>(config.degree[d]);
  }
  const double element = static_cast<double>(graph_->bytes_per_element);
  const double tile = count(op.shape) / (parts / static_cast<double>(config.reduce));
  work.flops = op.flops / parts;
  work.bytes = element * (tile + op.read_elements / parts +
                          static_cast<double>(op.weight_elements) / weight_cuts);
  work.sum_bytes = element * tile * static_cast<double>(config.reduce + 1);
  return work;
}

}  // namespace eddy
