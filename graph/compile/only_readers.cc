#include "graph/compile/only_readers.h"

namespace eddy {

std::vector<NodeId> only_readers(const Graph& graph) {
  std::vector<NodeId> readers(graph.num_values());
  std::vector<bool> is_taken(graph.num_values(), false);
  const auto take = [&](ValueId value, NodeId reader) {
    if (value.is_none()) return;
    const bool is_first = !is_taken[value.index()];
    is_taken[value.index()] = true;
    readers[value.index()] = is_first ? reader : NodeId();
  };
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    for (const ValueId value : node.inputs) {
      const bool is_near = node.kind == NodeKind::kExec && !value.is_none() &&
                           graph.value(value).region == node.region;
      take(value, is_near ? NodeId(n) : NodeId());
    }
  }
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    for (const ValueId value : graph.region(RegionId(r)).results) take(value, NodeId());
  }
  return readers;
}

}  // namespace eddy
