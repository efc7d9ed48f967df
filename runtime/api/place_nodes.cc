#include "runtime/api/place_nodes.h"

#include <algorithm>
#include <unordered_map>

#include "graph/base/check.h"
#include "graph/compile/fix_caches.h"
#include "graph/compile/fold_into_products.h"
#include "graph/compile/fuse.h"
#include "graph/compile/idle_moves.h"
#include "graph/compile/merge_loops.h"
#include "graph/compile/place.h"
#include "graph/compile/split_bias.h"
#include "graph/compile/split_concats.h"
#include "graph/loops/device_loops.h"
#include "graph/loops/persistent_program.h"
#include "graph/schedule/costs/cost_model.h"
#include "runtime/device/compile.h"
#include "runtime/execute/control/device_control.h"

namespace eddy {
namespace {

// What a node is bound by while its graph is still being made.
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
  NodePlacer(const OpTable& ops, std::span<const ExecutionDevice> devices,
             const std::vector<std::string>& names, const PlaceNodesOptions& options)
      : ops_(ops),
        devices_(devices),
        names_(names),
        drives_loops_(options.drives_loops),
        merges_(options.merges_loops) {
    EDDY_DCHECK(devices.size() == names.size()) << names.size() << " names of devices";
    options_.devices = names;
    if (!options.has_host_arithmetic) options_.choice.max_host_elements = 0;
    options_.choice.can_run = [this](const Graph& graph, NodeId node, uint32_t device) {
      return bind(graph, node, device).status();
    };
  }

  Result<PlacedNodes> run(Graph graph) {
    std::string text;
    EDDY_ASSIGN_OR_RETURN(graph, with_fixed_caches(std::move(graph), text));
    EDDY_ASSIGN_OR_RETURN(PlacedGraph placed, merged(std::move(graph)));
    PlacedNodes made{std::move(placed.graph), std::move(placed.value_devices),
                     placed.report.text() + text + merged_text_};
    for (uint32_t d = 1; d < devices_.size(); ++d) EDDY_RETURN_IF_ERROR(fuse_nodes(d, made));
    return made;
  }

 private:
  // Where a device then drives the loops by itself: from the host, rounds would only write more.
  Result<Graph> with_fixed_caches(Graph graph, std::string& text) const {
    for (uint32_t d = 1; drives_loops_ && d < devices_.size(); ++d) {
      if (devices_[d].device->compile_or_null() == nullptr) continue;
      EDDY_ASSIGN_OR_RETURN(FixedCaches fixed,
                            fix_caches(graph.copy(), ops_, {.device = names_[d]}));
      if (fixed.loops.empty()) continue;
      EDDY_ASSIGN_OR_RETURN(const PlacedGraph placed, placed(fixed.graph));
      const std::vector<ControlVerdict> verdicts = judge(placed);
      std::string why_not;
      for (uint32_t n = 0; n < verdicts.size(); ++n) {
        const std::string path = placed.graph.path(NodeId(n));
        const bool is_fixed = std::ranges::count(fixed.loops, path) > 0;
        if (!is_fixed || verdicts[n].is_driven_by_device) continue;
        why_not += path + " has caches that grow: " + verdicts[n].reason + "\n";
      }
      text += why_not;
      if (!why_not.empty()) continue;
      for (const std::string& path : fixed.loops) text += path + " has caches of one length\n";
      return std::move(fixed.graph);
    }
    return graph;
  }

  Status fuse_nodes(uint32_t device, PlacedNodes& nodes) const {
    Compile* const compile = devices_[device].device->compile_or_null();
    if (compile == nullptr) {
      const std::string why_not = devices_[device].device->why_no_compile();
      if (!why_not.empty()) nodes.text += "not fused: " + why_not + "\n";
      return Status::ok();
    }
    FuseOptions options;
    options.device = names_[device];
    options.function_of = [&](const Graph& from, NodeId id) {
      return function_of(from, id, *compile);
    };
    options.prepare = [&](const Expression& expression, const std::vector<ElementType>& inputs,
                          const std::vector<ElementType>& outputs) {
      return compile->prepare_elements(expression, inputs, outputs);
    };
    const auto is_elementwise = [&](const Graph& from, NodeId id) {
      return function_of(from, id, *compile).has_value();
    };
    EDDY_ASSIGN_OR_RETURN(
        IdleMoves still,
        idle_moves(std::move(nodes.graph), ops_, std::move(nodes.value_devices), names_[device]));
    EDDY_ASSIGN_OR_RETURN(
        FoldedProducts folded,
        fold_into_products(std::move(still.graph), ops_, std::move(still.value_devices),
                           {names_[device], is_elementwise}));
    EDDY_ASSIGN_OR_RETURN(SplitConcats summed,
                          split_concats(std::move(folded.graph), ops_,
                                        std::move(folded.value_devices), names_[device]));
    const SplitBiasOptions split_options = {names_[device], is_elementwise};
    EDDY_ASSIGN_OR_RETURN(
        SplitBiases split,
        split_bias(std::move(summed.graph), ops_, std::move(summed.value_devices), split_options));
    EDDY_ASSIGN_OR_RETURN(FusedGraph fused, fuse(std::move(split.graph), ops_,
                                                 std::move(split.value_devices), options));
    nodes.graph = std::move(fused.graph);
    nodes.value_devices = std::move(fused.value_devices);
    nodes.text += fused.report.text();
    return Status::ok();
  }

  Result<BoundKernel> bind(const Graph& graph, NodeId node, uint32_t device) const {
    return with_init(graph, node,
                     [&](const KernelInit& init) { return devices_[device].kernels->bind(init); });
  }
  static std::optional<ElementFunction> function_of(const Graph& graph, NodeId id,
                                                    const Compile& compile) {
    return with_init(graph, id, [&](const KernelInit& init) { return compile.function_of(init); });
  }

  // Scalar and shape arithmetic is the host's, but in loops that a device drives by itself because
  // it is not.
  Result<PlacedGraph> placed(const Graph& graph) const {
    EDDY_ASSIGN_OR_RETURN(PlacedGraph made, place(graph.copy(), ops_, options_));
    std::vector<NodeId> loops;
    if (drives_loops_) loops = loops_of(graph, made, false);
    if (loops.empty() || options_.choice.max_host_elements == 0) return made;
    PlaceOptions options = options_;
    for (size_t num_loops = 0; num_loops != loops.size();) {
      num_loops = loops.size();
      options.choice.loops_off_host = loops;
      EDDY_ASSIGN_OR_RETURN(PlacedGraph tried, place(graph.copy(), ops_, options));
      const std::vector<NodeId> driven = loops_of(graph, tried, true);
      std::erase_if(loops, [&](NodeId loop) { return std::ranges::count(driven, loop) == 0; });
      if (loops.size() == num_loops) return tried;
      if (loops.empty()) return made;
    }
    return made;
  }

  // Of the given graph: loops on devices that these drive by themselves, or do not.
  std::vector<NodeId> loops_of(const Graph& graph, const PlacedGraph& placed,
                               bool are_driven) const {
    std::unordered_map<std::string, const ControlVerdict*> by_path;
    const std::vector<ControlVerdict> verdicts = judge(placed);
    for (uint32_t n = 0; n < verdicts.size(); ++n) {
      const bool is_loop = placed.graph.node(NodeId(n)).kind == NodeKind::kWhile;
      if (is_loop && verdicts[n].device != 0) by_path[placed.graph.path(NodeId(n))] = &verdicts[n];
    }
    std::vector<NodeId> loops;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      if (graph.node(NodeId(n)).kind != NodeKind::kWhile) continue;
      const auto found = by_path.find(graph.path(NodeId(n)));
      const bool is_one =
          found != by_path.end() && found->second->is_driven_by_device == are_driven;
      if (is_one) loops.push_back(NodeId(n));
    }
    return loops;
  }

  // Merges until there is nothing to merge; what cannot be driven as one stays apart.
  Result<PlacedGraph> merged(Graph graph) {
    const auto is_loop = [&](uint32_t n) { return graph.node(NodeId(n)).kind == NodeKind::kWhile; };
    size_t num_loops = 0;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) num_loops += is_loop(n) ? 1 : 0;
    if (!merges_ || num_loops <= kMostApart) return placed(graph);
    EDDY_ASSIGN_OR_RETURN(PlacedGraph apart, placed(graph));
    for (uint32_t device = 1; device < devices_.size();) {
      const std::vector<NodeId> siblings = find_siblings(graph, candidates(graph, apart, device));
      if (siblings.size() <= kMostApart) {
        ++device;
        continue;
      }
      const std::string what = loops_text(graph, siblings);
      EDDY_ASSIGN_OR_RETURN(Graph one, merge_loops(graph.copy(), ops_, siblings, names_[device]));
      EDDY_ASSIGN_OR_RETURN(PlacedGraph together, placed(one));
      const std::string why_not = why_not_driven(graph, siblings, together);
      if (!why_not.empty()) {
        merged_text_ += what + " stay apart: as one, " + why_not + "\n";
        return apart;
      }
      merged_text_ += what + " are one\n";
      graph = std::move(one);
      apart = std::move(together);
    }
    return apart;
  }

  static std::string loops_text(const Graph& graph, const std::vector<NodeId>& siblings) {
    std::string names;
    for (const NodeId id : siblings) names += (names.empty() ? "" : ", ") + graph.path(id);
    return std::to_string(siblings.size()) + " loops beside each other, of which devices drive " +
           std::to_string(kMostApart) + " at once (" + names + "),";
  }

  std::vector<ControlVerdict> judge(const PlacedGraph& placed) const {
    EDDY_DCHECK(placed.value_devices.size() == placed.graph.num_values()) << "a device for each";
    const auto device_of = [&](NodeId node) {
      const auto found = std::ranges::find(names_, placed.graph.node(node).device);
      return found == names_.end() ? 0u : static_cast<uint32_t>(found - names_.begin());
    };
    return find_device_loops(placed.graph, {device_of, [&](ValueId value) {
                                              return placed.value_devices[value.index()];
                                            }});
  }

  // Of the given graph. Paths stay as nodes are placed.
  std::vector<NodeId> candidates(const Graph& graph, const PlacedGraph& placed,
                                 uint32_t device) const {
    if (!can_decide_loops(*devices_[device].device)) return {};
    std::unordered_map<std::string, NodeId> given;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      if (graph.node(NodeId(n)).kind == NodeKind::kWhile) given[graph.path(NodeId(n))] = NodeId(n);
    }
    const std::vector<ControlVerdict> verdicts = judge(placed);
    std::vector<NodeId> found;
    for (uint32_t n = 0; n < verdicts.size(); ++n) {
      const bool is_loop = placed.graph.node(NodeId(n)).kind == NodeKind::kWhile;
      if (!is_loop || !verdicts[n].is_outermost || verdicts[n].device != device) continue;
      if (is_one_kernel(placed, NodeId(n), device)) continue;
      const auto at = given.find(placed.graph.path(NodeId(n)));
      if (at != given.end() && can_be_merged(graph, at->second, device))
        found.push_back(at->second);
    }
    return found;
  }

  bool is_one_kernel(const PlacedGraph& placed, NodeId loop, uint32_t device) const {
    const Compile* const compile = devices_[device].device->compile_or_null();
    if (compile == nullptr) return false;
    PersistentFacts facts;
    facts.is_value_on_device = [&](ValueId value) {
      return placed.value_devices[value.index()] != 0;
    };
    facts.constant = [&](ValueId value) {
      const ValueInfo& info = placed.graph.value(value);
      const bool is_constant = info.origin == ValueOrigin::kConstant;
      return is_constant ? placed.graph.constant(info.constant).view() : TensorView();
    };
    facts.function_of = [&](NodeId node) { return function_of(placed.graph, node, *compile); };
    return make_persistent_program(placed.graph, loop, facts).is_ok();
  }

  bool can_be_merged(const Graph& graph, NodeId loop, uint32_t device) const {
    if (!why_not_merged(graph, loop).empty()) return false;
    NodeLoad load;
    for (const RegionId region : graph.node(loop).regions) {
      for (const NodeId id : graph.region(region).nodes) {
        const Node& node = graph.node(id);
        if (node.op->is_view) continue;
        const Result<BoundKernel> kernel = bind(graph, id, device);
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
  const std::span<const ExecutionDevice> devices_;
  const std::vector<std::string>& names_;
  const bool drives_loops_;
  const bool merges_;
  PlaceOptions options_;
  std::string merged_text_;
};

}  // namespace

Result<PlacedNodes> place_nodes(Graph graph, const OpTable& ops,
                                std::span<const ExecutionDevice> devices,
                                const std::vector<std::string>& names,
                                const PlaceNodesOptions& options) {
  return NodePlacer(ops, devices, names, options).run(std::move(graph));
}

}  // namespace eddy
