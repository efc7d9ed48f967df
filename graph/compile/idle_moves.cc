#include "graph/compile/idle_moves.h"

#include <set>
#include <utility>

#include "graph/compile/placed_copier.h"
#include "graph/compile/strided_place.h"

namespace eddy {
namespace {

bool is_idle(const Graph& graph, NodeId id, const std::string& device) {
  const Node& node = graph.node(id);
  if (node.kind != NodeKind::kExec || node.device != device || node.op->is_view ||
      node.outputs.size() != 1) {
    return false;
  }
  const StridedPlace place =
      find_place(graph, node.outputs[0], [&](NodeId passed) { return passed == id; });
  if (place.root == node.outputs[0] || place.factor != 1 || !place.is_dense()) return false;
  const ValueType &from = graph.value(place.root).type, &to = graph.value(node.outputs[0]).type;
  return from.tensor.dims.count() == to.tensor.dims.count();
}

class MovesToViews : public PlacedCopier {
 public:
  MovesToViews(const Graph& source, GraphBuilder& builder, const std::set<NodeId>& idle,
               const std::vector<uint32_t>& value_devices)
      : PlacedCopier(source, builder, value_devices), idle_(idle) {}

 private:
  void exec(NodeId id) override {
    if (!idle_.contains(id)) return copy_exec(id);
    const Node& node = source_.node(id);
    const ValueInfo& result = source_.value(node.outputs[0]);
    const Value sizes = builder_.vector(result.type.tensor.dims.span());
    define(node.outputs[0],
           builder_.op("Reshape", {value(node.inputs[0]), sizes}, {},
                       {.name = node.name, .device = node.device, .output_names = {result.name}}));
  }

  const std::set<NodeId>& idle_;
};

}  // namespace

Result<IdleMoves> idle_moves(Graph graph, const OpTable& ops, std::vector<uint32_t> value_devices,
                             const std::string& device) {
  std::set<NodeId> idle;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (is_idle(graph, NodeId(n), device)) idle.insert(NodeId(n));
  }
  if (idle.empty()) return IdleMoves{std::move(graph), std::move(value_devices), 0};
  GraphBuilder builder(ops, graph.name());
  MovesToViews copier(graph, builder, idle, value_devices);
  EDDY_ASSIGN_OR_RETURN(PlacedCopy made, copier.finish(std::move(graph)));
  return IdleMoves{std::move(made.graph), std::move(made.value_devices), idle.size()};
}

}  // namespace eddy
