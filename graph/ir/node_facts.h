// What is known of nodes and values before anything runs: of static shape, read on the host, used.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/graph.h"

namespace eddy {

// Its shapes are known and no output is strings: nothing need be found out while it runs.
inline bool is_static_node(const Graph& graph, const Node& node) {
  const auto is_static = [&](ValueId value) {
    return value.is_none() || graph.value(value).type.is_static_tensor();
  };
  const auto is_text = [&](ValueId value) {
    return graph.value(value).type.tensor.element == ElementType::kString;
  };
  return std::ranges::all_of(node.inputs, is_static) &&
         std::ranges::all_of(node.outputs, is_static) &&
         std::ranges::none_of(node.outputs, is_text);
}

// It calls a function of the caller's, which may have effects of its own.
inline bool calls_host_function(const Node& node) {
  return node.kind == NodeKind::kExec && node.op->domain == "eddy" &&
         node.op->name == "HostPredicate";
}

// What it does is seen outside of the graph: it calls a function of the caller's, or sends to other
// ranks or receives from them (ops/schema/eddy/collective.h). An operator of Eddy's own waits for
// nothing else. So no pass drops it, evaluates it, merges it with an equal one, or makes it run
// more often.
inline bool has_effects(const Node& node) {
  return node.kind == NodeKind::kExec && node.op->domain == "eddy" && node.op->may_wait;
}

// True when both are tensors of one known type and shape, so that moving memory is enough.
inline bool is_static_pair(const Graph& graph, ValueId a, ValueId b) {
  const ValueType& type = graph.value(a).type;
  return type.is_static_tensor() && type == graph.value(b).type;
}

// The host reads input i, also when the node is on another device: its bytes, or its shape only.
inline bool is_host_input(const Node& node, size_t i) {
  EDDY_DCHECK(node.op != nullptr) << node.name << " is no exec node";
  const InputFlag flags = node.op->input_flags(i);
  return has_flag(flags, InputFlag::kHostValue) || has_flag(flags, InputFlag::kShapeOnly);
}

// Whether the node reads, on the host, the bytes of inputs that are not constant.
inline bool has_host_values(const Graph& graph, const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].is_none()) continue;
    const bool is_constant = graph.value(node.inputs[i]).origin == ValueOrigin::kConstant;
    if (!is_constant && has_flag(node.op->input_flags(i), InputFlag::kHostValue)) return true;
  }
  return false;
}

// Calls visit(producer) for each node of the same region whose results the node reads, itself or in
// its regions; more than once where it reads several.
template <typename Visit>
void for_each_source(const Graph& graph, NodeId id, const Visit& visit) {
  const Node& node = graph.node(id);
  const auto read = [&](ValueId value) {
    if (value.is_none()) return;
    const ValueInfo& info = graph.value(value);
    if (info.origin == ValueOrigin::kNodeOutput && info.region == node.region) visit(info.producer);
  };
  for (const ValueId input : node.inputs) read(input);
  for (const RegionId region : node.regions) {
    for (const ValueId capture : graph.region(region).captures) read(capture);
  }
}

// How often each value is read by a node or is a result of a region, the graph's outputs among
// them. By ValueId.
inline std::vector<uint32_t> count_uses(const Graph& graph) {
  std::vector<uint32_t> uses(graph.num_values(), 0);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    for (const ValueId value : graph.node(NodeId(n)).inputs) {
      if (!value.is_none()) ++uses[value.index()];
    }
  }
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    for (const ValueId value : graph.region(RegionId(r)).results) {
      EDDY_DCHECK(value.index() < uses.size()) << "a result of region " << r << " is missing";
      ++uses[value.index()];
    }
  }
  return uses;
}

}  // namespace eddy
