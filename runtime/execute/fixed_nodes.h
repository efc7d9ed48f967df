// Which nodes have nothing to find out while they run: their shapes are known, and no bytes are
// read on the host.
#pragma once

#include <algorithm>

#include "graph/ir/graph.h"

namespace eddy {

inline bool is_fixed_tensor(const ValueType& type) {
  return type.is_tensor() && type.tensor.is_static();
}

inline bool is_fixed_node(const Graph& graph, const Node& node) {
  for (ValueId value : node.inputs) {
    if (!value.is_none() && !is_fixed_tensor(graph.value(value).type)) return false;
  }
  for (ValueId value : node.outputs) {
    if (!is_fixed_tensor(graph.value(value).type)) return false;
    if (graph.value(value).type.tensor.element == ElementType::kString) return false;
  }
  return true;
}

// Whether the node reads, on the host, inputs that are not constant.
inline bool has_host_values(const Graph& graph, const Node& node) {
  const auto& formals = node.op->inputs;
  for (size_t i = 0; i < node.inputs.size() && !formals.empty(); ++i) {
    const InputFlag flags = formals[std::min(i, formals.size() - 1)].flags;
    if (node.inputs[i].is_none() || !has_flag(flags, InputFlag::kHostValue)) continue;
    if (graph.value(node.inputs[i]).origin != ValueOrigin::kConstant) return true;
  }
  return false;
}

}  // namespace eddy
