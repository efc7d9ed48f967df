#include "graph/strategy/operators/operator_graph.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

Interval InputDim::read(Interval part, int64_t extent) const {
  if (axis == kAll) return {0, extent};
  return {std::max<int64_t>(part.begin * stride - before, 0),
          std::min<int64_t>((part.end - 1) * stride + 1 + after, extent)};
}

OperatorNumbers numbers_by_name(const OperatorGraph& graph) {
  OperatorNumbers numbers;
  for (uint32_t i = 0; i < graph.operators.size(); ++i) numbers[graph.operators[i].name] = i;
  return numbers;
}

std::string tile_name(const Dims& tile) {
  std::string name;
  for (const int64_t dim : tile) name += (name.empty() ? "" : "x") + std::to_string(dim);
  return name;
}

Dims tile_of(const Operator& op, const OperatorConfig& config) {
  Dims tile = op.shape;
  EDDY_DCHECK(config.degree.rank() == tile.rank()) << op.name << " of " << to_string(tile);
  for (int d = 0; d < tile.rank(); ++d) {
    EDDY_DCHECK(config.degree[d] > 0 && tile[d] % config.degree[d] == 0)
        << "dimension " << d << " of " << op.name << " in " << config.degree[d] << " parts";
    tile[d] /= config.degree[d];
  }
  return tile;
}

Interval part_interval(const Operator& op, const OperatorConfig& config, int64_t part, int d) {
  EDDY_DCHECK(d <= op.shape.rank() && part < config.num_parts())
      << "dimension " << d << " of part " << part << " of " << op.name;
  int64_t inner = config.reduce;
  if (d == op.shape.rank()) {
    const int64_t share = op.reduction / config.reduce;
    const int64_t at = part % config.reduce;
    return {at * share, (at + 1) * share};
  }
  for (int i = op.shape.rank() - 1; i > d; --i) inner *= config.degree[i];
  const int64_t size = op.shape[d] / config.degree[d];
  const int64_t at = part / inner % config.degree[d];
  return {at * size, (at + 1) * size};
}

Status check_config(const Operator& op, const OperatorConfig& config, const Topology& topology) {
  const std::string where = "operator '" + op.name + "': ";
  if (config.degree.rank() != op.shape.rank()) {
    return invalid_argument(where + "the degree has " + std::to_string(config.degree.rank()) +
                            " entries, the shape " + to_string(op.shape) + " has " +
                            std::to_string(op.shape.rank()) + " dimensions");
  }
  int64_t parts = 1;
  for (int d = 0; d <= op.shape.rank(); ++d) {
    const bool is_reduction = d == op.shape.rank();
    const int64_t degree = is_reduction ? config.reduce : config.degree[d];
    const int64_t extent = is_reduction ? op.reduction : op.shape[d];
    const std::string name = is_reduction ? "the reduction" : "dimension " + std::to_string(d);
    if (degree < 1) {
      return invalid_argument(where + "degree " + std::to_string(degree) + " of " + name +
                              " must be at least 1");
    }
    if (extent % degree != 0 || degree > extent) {
      return invalid_argument(where + "degree " + std::to_string(degree) + " does not divide " +
                              name + " of extent " + std::to_string(extent));
    }
    if (degree > 1 && !is_reduction && (op.splittable >> d & 1) == 0) {
      return invalid_argument(where + name + " of " + op.type + " cannot be split");
    }
    if (degree > (int64_t{1} << 24) / parts) {
      return invalid_argument(where + "more than 2^24 parts");
    }
    parts *= degree;
  }
  const auto given = static_cast<int64_t>(config.devices.size());
  if (given < parts) {
    return invalid_argument(where + "part " + std::to_string(given) +
                            " has no device: " + std::to_string(parts) + " parts, " +
                            std::to_string(given) + " devices");
  }
  if (given > parts) {
    return invalid_argument(where + std::to_string(given) + " devices for " +
                            std::to_string(parts) + " parts");
  }
  for (const uint32_t device : config.devices) {
    if (device >= topology.num_nodes() || topology.node(device).is_switch) {
      return invalid_argument(where + "a part is on what is no device");
    }
  }
  return Status::ok();
}

OperatorConfig single_config(const Operator& op, uint32_t device) {
  OperatorConfig config;
  for (int d = 0; d < op.shape.rank(); ++d) config.degree.push_back(1);
  config.devices = {device};
  return config;
}

Strategy single_device_strategy(const OperatorGraph& graph, const Topology& topology) {
  Strategy strategy;
  for (const Operator& op : graph.operators) {
    EDDY_DCHECK(!topology.devices().empty()) << "no device for " << op.name;
    strategy.push_back(single_config(op, topology.devices()[0]));
  }
  return strategy;
}

}  // namespace eddy
