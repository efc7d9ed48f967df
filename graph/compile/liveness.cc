#include "graph/compile/liveness.h"

#include "graph/ir/node_facts.h"

namespace eddy {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> is_live(graph.num_nodes(), false);
  std::vector<NodeId> pending;
  const auto mark = [&](NodeId node) {
    if (node.is_none() || is_live[node.index()]) return;
    is_live[node.index()] = true;
    pending.push_back(node);
  };
  const auto read = [&](ValueId value) {
    if (!value.is_none()) mark(graph.value(value).producer);
  };
  for (ValueId value : graph.outputs()) read(value);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (has_effects(graph.node(NodeId(n)))) mark(NodeId(n));
  }
  while (!pending.empty()) {
    const Node& node = graph.node(pending.back());
    pending.pop_back();
    mark(graph.region(node.region).owner);
    for (ValueId value : node.inputs) read(value);
    for (RegionId region : node.regions) {
      for (ValueId value : graph.region(region).results) read(value);
    }
  }
  return is_live;
}

std::vector<bool> read_values(const Graph& graph) {
  std::vector<bool> is_read(graph.num_values(), false);
  const auto read = [&](std::span<const ValueId> values) {
    for (const ValueId value : values) {
      if (!value.is_none()) is_read[value.index()] = true;
    }
  };
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) read(graph.node(NodeId(n)).inputs);
  for (uint32_t r = 0; r < graph.num_regions(); ++r) read(graph.region(RegionId(r)).results);
  read(graph.outputs());
  return is_read;
}

}  // namespace eddy
