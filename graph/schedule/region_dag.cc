#include "graph/schedule/region_dag.h"

#include <unordered_map>

#include "graph/base/check.h"
#include "graph/ir/node_facts.h"

namespace eddy {

Dag region_dag(const Graph& graph, RegionId id) {
  const Region& region = graph.region(id);
  std::unordered_map<NodeId, uint32_t> position;
  for (uint32_t i = 0; i < region.nodes.size(); ++i) position[region.nodes[i]] = i;
  std::vector<Edge> edges;
  for (uint32_t i = 0; i < region.nodes.size(); ++i) {
    for_each_source(graph, region.nodes[i], [&](NodeId source) {
      EDDY_DCHECK(position.at(source) < i) << "a node stands before what it reads";
      edges.push_back({position.at(source), i});
    });
  }
  return Dag::from_acyclic_edges(static_cast<uint32_t>(region.nodes.size()), edges);
}

}  // namespace eddy
