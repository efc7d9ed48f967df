#include "graph/loops/fixed_addresses.h"

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/node_facts.h"

namespace eddy {
namespace {

std::vector<bool> find_moved(const Graph& graph) {
  std::vector<bool> is_moved(graph.num_values(), false);
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    for (ValueId result : graph.region(RegionId(r)).results) {
      is_moved[resolve_forwarded(graph, result).index()] = true;
    }
  }
  return is_moved;
}

}  // namespace

std::vector<ValueId> find_fixed_addresses(const Graph& graph, const MemoryPlan& memory,
                                          const std::function<bool(NodeId)>& makes_outputs) {
  std::vector<ValueId> place(graph.num_values());
  const std::vector<bool> is_moved = find_moved(graph);
  const auto look_at = [&](NodeId id) {
    const Node& node = graph.node(id);
    const bool is_fixed = node.kind == NodeKind::kExec && is_static_node(graph, node);
    if (!is_fixed || makes_outputs(id)) return;
    for (const ValueId output : node.outputs) {
      if (is_moved[output.index()]) continue;
      if (node.op->is_view) {
        if (has_host_values(graph, node)) continue;
        place[output.index()] = place[resolve_forwarded(graph, node.inputs[0]).index()];
        continue;
      }
      const ValueMemory* const block = memory.block_or_null(output);
      if (block != nullptr && block->holders.empty()) place[output.index()] = output;
    }
  };
  // Sources come first, within a region and mostly among regions; what is not known yet may move.
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    for (NodeId node : graph.region(RegionId(r)).nodes) look_at(node);
  }
  const auto is_own = [&](ValueId at) { return at.is_none() || place[at.index()] == at; };
  EDDY_DCHECK(std::ranges::all_of(place, is_own))
      << "a value stands in the block of one that moves";
  return place;
}

}  // namespace eddy
