#include "graph/loops/unrolling.h"

#include "graph/ir/control_view.h"
#include "graph/ir/region_tree.h"
#include "graph/loops/device_loops.h"

namespace eddy {
namespace {

// Whether a node is launched, where the device drives the loop around it.
bool is_launched(const Graph& graph, const Node& node) {
  const bool is_copy = copy_to_host_or_null(graph, node.outputs[0]) != nullptr;
  const bool is_counter =
      !node.inputs.empty() && !node.inputs[0].is_none() && is_iteration(graph, node.inputs[0]);
  return !node.op->is_view && !is_copy && !is_counter;
}

}  // namespace

std::string why_not_unrolled(const Graph& graph, NodeId loop) {
  if (graph.node(loop).kind != NodeKind::kWhile) return graph.node(loop).name + " is no loop";
  uint32_t num_launches = 0;
  for (const RegionId region : graph.node(loop).regions) {
    for (const NodeId id : graph.region(region).nodes) {
      const Node& node = graph.node(id);
      if (node.kind != NodeKind::kExec) return "there is " + node.name + " inside";
      num_launches += is_launched(graph, node) ? 1 : 0;
    }
  }
  if (num_launches <= Unrolling::kMostNodes) return "";
  return "an iteration of " + graph.node(loop).name + " has " + std::to_string(num_launches) +
         " kernels, up to " + std::to_string(Unrolling::kMostNodes) + " are few";
}

std::string why_nothing_unrolled(const Graph& graph, NodeId outermost) {
  std::string why = why_not_unrolled(graph, outermost);
  const RegionTree tree(graph);
  for (uint32_t n = 0; n < graph.num_nodes() && !why.empty(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kWhile || !tree.is_inside(node.region, outermost)) continue;
    if (why_not_unrolled(graph, NodeId(n)).empty()) return "";
  }
  return why;
}

}  // namespace eddy
