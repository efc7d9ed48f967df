#include "graph/strategy/search/baselines.h"

#include <algorithm>
#include <map>

#include "graph/base/check.h"

namespace eddy {
namespace {

int64_t largest_divisor(int64_t extent, int64_t at_most) {
  EDDY_CHECK(extent > 0 && at_most > 0) << "no divisor of " << extent << " up to " << at_most;
  for (int64_t d = std::min(extent, at_most); d > 1; --d) {
    if (extent % d == 0) return d;
  }
  return 1;
}

bool may_split(const Operator& op, int d) { return (op.splittable >> d & 1) != 0; }

// Cut along dimension d over the devices, in order.
OperatorConfig spread(const Operator& op, int d, const std::vector<uint32_t>& devices) {
  OperatorConfig config = single_config(op, devices[0]);
  if (d >= op.shape.rank() || !may_split(op, d)) return config;
  const int64_t degree = largest_divisor(op.shape[d], static_cast<int64_t>(devices.size()));
  config.degree[d] = degree;
  config.devices.assign(devices.begin(), devices.begin() + degree);
  return config;
}

bool shares_weights(const OperatorGraph& graph) {
  const auto count = std::count_if(graph.operators.begin(), graph.operators.end(),
                                   [](const Operator& op) { return op.weight_elements > 0; });
  std::vector<bool> has_weights(graph.num_weight_groups);
  for (const Operator& op : graph.operators) {
    if (op.weight_elements > 0) has_weights[op.weight_group] = true;
  }
  return count > std::count(has_weights.begin(), has_weights.end(), true);
}

bool is_dense(const Operator& op) { return op.weight_elements > 0 && op.shape.rank() == 2; }

// A layer is a weight group; operators without weights go with their first input.
Strategy by_layer(const OperatorGraph& graph, const Topology& topology) {
  const std::vector<std::vector<uint32_t>> nodes = find_nodes(topology);
  size_t per_node = nodes[0].size();
  for (const auto& node : nodes) per_node = std::min(per_node, node.size());
  EDDY_CHECK(per_node > 0) << "a node without devices";
  std::map<uint32_t, size_t> layer_of_group;
  std::vector<size_t> layer(graph.operators.size(), 0);
  Strategy strategy;
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    if (op.weight_elements > 0) {
      layer[i] = layer_of_group.try_emplace(op.weight_group, layer_of_group.size()).first->second;
    } else if (!op.inputs.empty()) {
      layer[i] = layer[op.inputs[0].producer];
    }
    std::vector<uint32_t> devices;
    for (const auto& node : nodes) devices.push_back(node[layer[i] % per_node]);
    strategy.push_back(spread(op, 0, devices));
  }
  return strategy;
}

}  // namespace

Strategy data_parallel_strategy(const OperatorGraph& graph, const Topology& topology) {
  Strategy strategy;
  for (const Operator& op : graph.operators) {
    strategy.push_back(spread(op, 0, topology.devices()));
  }
  return strategy;
}

Strategy expert_strategy(const OperatorGraph& graph, const Topology& topology) {
  if (shares_weights(graph)) return by_layer(graph, topology);
  Strategy strategy;
  for (const Operator& op : graph.operators) {
    strategy.push_back(spread(op, is_dense(op) ? 1 : 0, topology.devices()));
  }
  return strategy;
}

std::vector<std::vector<uint32_t>> find_nodes(const Topology& topology) {
  double slowest = 0;
  for (const Link& link : topology.links()) {
    if (slowest == 0 || link.bandwidth < slowest) slowest = link.bandwidth;
  }
  const bool is_uniform = std::all_of(topology.links().begin(), topology.links().end(),
                                      [&](const Link& l) { return l.bandwidth == slowest; });
  if (is_uniform) return {topology.devices()};
  std::vector<uint32_t> root(topology.num_nodes());
  for (uint32_t i = 0; i < root.size(); ++i) root[i] = i;
  const auto find = [&](uint32_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  for (const Link& link : topology.links()) {
    if (link.bandwidth > slowest) {
      const uint32_t a = find(link.from);
      const uint32_t b = find(link.to);
      root[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<uint32_t, std::vector<uint32_t>> members;
  for (const uint32_t device : topology.devices()) members[find(device)].push_back(device);
  std::vector<std::vector<uint32_t>> nodes;
  for (auto& [_, devices] : members) nodes.push_back(std::move(devices));
  return nodes;
}

ConfigSpace::ConfigSpace(const OperatorGraph& graph, const Topology& topology)
    : topology_(topology) {
  for (const Operator& op : graph.operators) {
    std::vector<Cut> cuts;
    add_cuts(op, 0, {}, 1, cuts);
    if (!op.exe_by_tile.empty()) {
      std::erase_if(cuts, [&](const Cut& cut) {
        return !op.exe_by_tile.contains(tile_name(tile_of(op, {cut.degree, 1, {}})));
      });
    }
    if (cuts.empty()) cuts.push_back({single_config(op, 0).degree, 1});
    cuts_.push_back(std::move(cuts));
  }
}

void ConfigSpace::add_cuts(const Operator& op, int d, Cut cut, int64_t parts,
                           std::vector<Cut>& cuts) const {
  const auto most = static_cast<int64_t>(topology_.devices().size());
  const bool is_reduction = d == op.shape.rank();
  const int64_t extent = is_reduction ? op.reduction : op.shape[d];
  for (int64_t degree = 1; degree * parts <= most && degree <= extent; ++degree) {
    if (extent % degree != 0 || (degree > 1 && !is_reduction && !may_split(op, d))) continue;
    Cut next = cut;
    if (is_reduction) {
      next.reduce = degree;
      cuts.push_back(next);
      continue;
    }
    next.degree.push_back(degree);
    add_cuts(op, d + 1, next, parts * degree, cuts);
  }
}

OperatorConfig ConfigSpace::draw(uint32_t op, Random& random) const {
  const Cut& cut = cuts_[op][random.below(cuts_[op].size())];
  OperatorConfig config{.degree = cut.degree, .reduce = cut.reduce, .devices = {}};
  const std::vector<uint32_t>& devices = topology_.devices();
  const auto parts = static_cast<uint64_t>(config.num_parts());
  EDDY_DCHECK(parts > 0 && parts <= devices.size())
      << parts << " parts on " << devices.size() << " devices";
  const uint64_t way = random.below(16);
  const uint64_t first = random.below(devices.size());
  const uint64_t step = way < 8 ? 1 : std::max<uint64_t>(devices.size() / parts, 1);
  for (uint64_t p = 0; p < parts; ++p) {
    const uint64_t at = way == 15 ? random.below(devices.size()) : first + p * step;
    config.devices.push_back(devices[at % devices.size()]);
  }
  return config;
}

Strategy random_strategy(const OperatorGraph& graph, const Topology& topology, Random& random) {
  const ConfigSpace space(graph, topology);
  Strategy strategy;
  for (uint32_t op = 0; op < graph.operators.size(); ++op) {
    strategy.push_back(space.draw(op, random));
  }
  return strategy;
}

}  // namespace eddy
