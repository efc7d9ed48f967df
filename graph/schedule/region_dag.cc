#include "graph/schedule/region_dag.h"

#include <unordered_map>

namespace eddy {

Dag region_dag(const Graph& graph, RegionId id) {
  const Region& region = graph.region(id);
  std::unordered_map<NodeId, uint32_t> position;
  for (uint32_t i = 0; i < region.nodes.size(); ++i) position[region.nodes[i]] = i;
  std::vector<Edge> edges;
  const auto read = [&](uint32_t reader, ValueId value) {
    if (value.is_none()) return;
    const ValueInfo& info = graph.value(value);
    if (info.origin != ValueOrigin::kNodeOutput || info.region != id) return;
    edges.push_back({position.at(info.producer), reader});
  };
  for (uint32_t i = 0; i < region.nodes.size(); ++i) {
    const Node& node = graph.node(region.nodes[i]);
    for (ValueId value : node.inputs) read(i, value);
    for (RegionId inner : node.regions) {
      for (ValueId value : graph.region(inner).captures) read(i, value);
    }
  }
  return Dag::from_acyclic_edges(static_cast<uint32_t>(region.nodes.size()), edges);
}

}  // namespace eddy
