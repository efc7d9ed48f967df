// Which values a region may give away at its end (see Transfers).
#pragma once

#include "graph/ir/graph.h"

namespace eddy {

// The value that `value` is another name for: a parameter of `after` is a result of `before`.
inline ValueId resolve_forwarded(const Graph& graph, ValueId value) {
  for (;;) {
    const ValueInfo& info = graph.value(value);
    if (info.origin != ValueOrigin::kParameter) return value;
    const Region& region = graph.region(info.region);
    if (region.owner.is_none() || info.index == 0) return value;
    const Node& owner = graph.node(region.owner);
    if (owner.regions[1] != info.region) return value;
    value = graph.region(owner.regions[0]).results[info.index];
  }
}

// True when `value`, a result of `region`, is made by a node of that region (or of `before`, for
// `after`), so that nothing reads it once the region has ended.
inline bool is_temporary(const Graph& graph, ValueId value, RegionId region) {
  const ValueInfo& info = graph.value(resolve_forwarded(graph, value));
  if (info.origin != ValueOrigin::kNodeOutput) return false;
  if (info.region == region) return true;
  const NodeId owner = graph.region(info.region).owner;
  return !owner.is_none() && owner == graph.region(region).owner &&
         graph.node(owner).kind == NodeKind::kWhile;
}

inline bool is_constant(const Graph& graph, ValueId value) {
  return graph.value(resolve_forwarded(graph, value)).origin == ValueOrigin::kConstant;
}

// True for a carried parameter of the loop `node` itself: dead once the loop has ended.
inline bool is_own_parameter(const Graph& graph, ValueId value, const Node& node) {
  const ValueInfo& info = graph.value(resolve_forwarded(graph, value));
  return info.origin == ValueOrigin::kParameter && info.region == node.regions[0] && info.index > 0;
}

// True when both are tensors of one known type and shape, so that moving memory is enough.
inline bool is_fixed_pair(const Graph& graph, ValueId a, ValueId b) {
  const ValueType& type = graph.value(a).type;
  return type.is_tensor() && type.tensor.is_static() && type == graph.value(b).type;
}

}  // namespace eddy
