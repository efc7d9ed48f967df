#include "runtime/api/place_nodes.h"

#include <algorithm>
#include <unordered_map>

#include "graph/compile/fuse.h"
#include "graph/compile/merge_loops.h"
#include "graph/compile/place.h"
#include "graph/loops/device_loops.h"
#include "graph/loops/persistent_program.h"
#include "graph/schedule/costs/cost_model.h"
#include "runtime/execute/device_control.h"

namespace eddy {
namespace {

// What binding a node is told while its graph is still being made.
template <typename Use>
auto with_init(const Graph& graph, NodeId id, Use use) {
  const Node& node = graph.node(id);
  std::vector<ValueType> inputs;
  std::vector<TensorView> constants;
  for (ValueId value : node.inputs) {
    inputs.push_back(value.is_none() ? ValueType() : graph.value(value).type);
    const bool is_constant =
        !value.is_none() && graph.value(value).origin == ValueOrigin::kConstant;
    constants.push_back(is_constant ? graph.constant(graph.value(value).constant).view()
                                    : TensorView());
  }
  std::vector<ValueType> outputs;
  for (ValueId value : node.outputs) outputs.push_back(graph.value(value).type);
  return use(KernelInit{*node.op, node.attributes, node.opset_version, node.name, inputs, outputs,
                        constants});
}

class NodePlacer {
 public:
  NodePlacer(const OpTable& ops, const Accelerator& accelerator, const PlacedNodes::Wishes& wishes)
      : ops_(ops), accelerator_(accelerator), wishes_(wishes), device_(accelerator.device->kind()) {
    options_.device = device_;
    if (!wishes.has_host_arithmetic) options_.choice.max_host_elements = 0;
    options_.choice.can_run = [this](const Graph& graph, NodeId node) {
      return bind(graph, node).status();
    };
  }

  Result<PlacedNodes> run(Graph graph) {
    EDDY_ASSIGN_OR_RETURN(PlacedGraph placed, merged(std::move(graph)));
    std::string text = placed.report.text() + merged_text_;
    const ElementFusion& fusion = accelerator_.fusion;
    if (!fusion.function_of) {
      if (!fusion.why_not.empty()) text += "not fused: " + fusion.why_not + "\n";
      return PlacedNodes{std::move(placed.graph), std::move(placed.value_devices), std::move(text)};
    }
    FuseOptions options;
    options.device = device_;
    options.function_of = [this](const Graph& from, NodeId id) { return function_of(from, id); };
    options.prepare = fusion.prepare;
    EDDY_ASSIGN_OR_RETURN(FusedGraph fused, fuse(std::move(placed.graph), ops_,
                                                 std::move(placed.value_devices), options));
    text += fused.report.text();
    return PlacedNodes{std::move(fused.graph), std::move(fused.value_devices), std::move(text)};
  }

 private:
  Result<BoundKernel> bind(const Graph& graph, NodeId node) const {
    return with_init(graph, node,
                     [&](const KernelInit& init) { return accelerator_.kernels->bind(init); });
  }
  std::optional<ElementFunction> function_of(const Graph& graph, NodeId id) const {
    return with_init(graph, id, accelerator_.fusion.function_of);
  }

  // Merges until there is nothing to merge; what cannot be driven as one stays apart.
  Result<PlacedGraph> merged(Graph graph) {
    const auto is_loop = [&](uint32_t n) { return graph.node(NodeId(n)).kind == NodeKind::kWhile; };
    size_t num_loops = 0;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) num_loops += is_loop(n) ? 1 : 0;
    const bool merges = accelerator_.merges_loops && wishes_.drives_loops;
    if (!merges || num_loops <= kMostApart) return place(std::move(graph), ops_, options_);
    EDDY_ASSIGN_OR_RETURN(PlacedGraph placed, place(graph.copy(), ops_, options_));
    while (true) {
      const std::vector<NodeId> siblings = find_siblings(graph, candidates(graph, placed));
      if (siblings.size() <= kMostApart) return placed;
      const std::string what = loops_text(graph, siblings);
      EDDY_ASSIGN_OR_RETURN(Graph one, merge_loops(graph.copy(), ops_, siblings, device_));
      EDDY_ASSIGN_OR_RETURN(PlacedGraph together, place(one.copy(), ops_, options_));
      const std::string why_not = why_not_driven(graph, siblings, together);
      if (!why_not.empty()) {
        merged_text_ += what + " stay apart: as one, " + why_not + "\n";
        return placed;
      }
      merged_text_ += what + " are one\n";
      graph = std::move(one);
      placed = std::move(together);
    }
  }

  static std::string loops_text(const Graph& graph, const std::vector<NodeId>& siblings) {
    std::string names;
    for (const NodeId id : siblings) names += (names.empty() ? "" : ", ") + graph.path(id);
    return std::to_string(siblings.size()) + " loops beside each other, of which devices drive " +
           std::to_string(kMostApart) + " at once (" + names + "),";
  }

  std::vector<ControlVerdict> judge(const PlacedGraph& placed) const {
    return find_device_loops(
        placed.graph, {[&](NodeId node) { return placed.graph.node(node).device == device_; },
                       [&](ValueId value) { return placed.value_devices[value.index()] != 0; }});
  }

  // Of the given graph. Paths stay as nodes are placed.
  std::vector<NodeId> candidates(const Graph& graph, const PlacedGraph& placed) const {
    std::unordered_map<std::string, NodeId> given;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      if (graph.node(NodeId(n)).kind == NodeKind::kWhile) given[graph.path(NodeId(n))] = NodeId(n);
    }
    const std::vector<ControlVerdict> verdicts = judge(placed);
    std::vector<NodeId> found;
    for (uint32_t n = 0; n < verdicts.size(); ++n) {
      const bool is_loop = placed.graph.node(NodeId(n)).kind == NodeKind::kWhile;
      if (!is_loop || !verdicts[n].is_outermost || is_one_kernel(placed, NodeId(n))) continue;
      const auto at = given.find(placed.graph.path(NodeId(n)));
      if (at != given.end() && can_be_merged(graph, at->second)) found.push_back(at->second);
    }
    return found;
  }

  bool is_one_kernel(const PlacedGraph& placed, NodeId loop) const {
    if (!accelerator_.loop_fusion.prepare || !accelerator_.fusion.function_of) return false;
    PersistentFacts facts;
    facts.is_value_on_device = [&](ValueId value) {
      return placed.value_devices[value.index()] != 0;
    };
    facts.constant = [&](ValueId value) {
      const ValueInfo& info = placed.graph.value(value);
      const bool is_constant = info.origin == ValueOrigin::kConstant;
      return is_constant ? placed.graph.constant(info.constant).view() : TensorView();
    };
    facts.function_of = [&](NodeId node) { return function_of(placed.graph, node); };
    return make_persistent_program(placed.graph, loop, facts).is_ok();
  }

  bool can_be_merged(const Graph& graph, NodeId loop) const {
    if (!why_not_merged(graph, loop).empty()) return false;
    NodeLoad load;
    for (const RegionId region : graph.node(loop).regions) {
      for (const NodeId id : graph.region(region).nodes) {
        const Node& node = graph.node(id);
        if (node.op->is_view) continue;
        const Result<BoundKernel> kernel = bind(graph, id);
        if (!kernel.is_ok() || kernel->may_fault) return false;
        const NodeLoad more = exec_load(graph, node);
        load.flops += more.flops;
        load.moved_bytes += more.moved_bytes;
      }
    }
    return load.flops <= PlacedNodes::kMostFlops && load.moved_bytes <= PlacedNodes::kMostBytes;
  }

  std::string why_not_driven(const Graph& graph, const std::vector<NodeId>& siblings,
                             const PlacedGraph& together) const {
    const std::string name = merged_name(graph, siblings);
    const std::vector<ControlVerdict> verdicts = judge(together);
    for (uint32_t n = 0; n < verdicts.size(); ++n) {
      const Node& node = together.graph.node(NodeId(n));
      if (node.kind != NodeKind::kWhile || node.name != name) continue;
      return verdicts[n].is_driven_by_device ? "" : verdicts[n].reason;
    }
    return "they cannot be found";
  }

  static constexpr size_t kMostApart = DeviceControl::kMostAtOnce;

  const OpTable& ops_;
  const Accelerator& accelerator_;
  const PlacedNodes::Wishes& wishes_;
  const std::string device_;
  PlaceOptions options_;
  std::string merged_text_;
};

}  // namespace

Result<PlacedNodes> place_nodes(Graph graph, const OpTable& ops, const Accelerator& accelerator,
                                const PlacedNodes::Wishes& wishes) {
  return NodePlacer(ops, accelerator, wishes).run(std::move(graph));
}

}  // namespace eddy
