#include "graph/ir/validate.h"

#include <algorithm>
#include <vector>

namespace eddy {
namespace {

Status broken(const Graph& graph, NodeId node, const std::string& what) {
  return internal_error("graph invariant broken: " + what).prepend_path(graph.path(node));
}

template <typename Function>
Status for_each_node(const Graph& graph, Function function) {
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    EDDY_RETURN_IF_ERROR(function(NodeId(i), graph.node(NodeId(i))));
  }
  return Status::ok();
}

// The region around `region`; none for the root.
RegionId parent(const Graph& graph, RegionId region) {
  const NodeId owner = graph.region(region).owner;
  return owner.is_none() ? RegionId() : graph.node(owner).region;
}

bool is_around(const Graph& graph, RegionId outer, RegionId inner) {
  while (!inner.is_none() && inner != outer) inner = parent(graph, inner);
  return inner == outer;
}

bool ids_exist(std::span<const ValueId> ids, size_t count, bool allow_none) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](ValueId id) { return id.is_none() ? allow_none : id.index() < count; });
}

}  // namespace

namespace validate_internal {

Status check_ids(const Graph& graph) {
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    const Region& region = graph.region(RegionId(r));
    const bool nodes_exist = std::all_of(region.nodes.begin(), region.nodes.end(), [&](NodeId id) {
      return !id.is_none() && id.index() < graph.num_nodes();
    });
    if (!nodes_exist || !ids_exist(region.parameters, graph.num_values(), false) ||
        !ids_exist(region.results, graph.num_values(), false)) {
      return internal_error("graph invariant broken: region " + std::to_string(r) +
                            " refers to something that does not exist");
    }
  }
  return for_each_node(graph, [&](NodeId id, const Node& node) {
    if (!ids_exist(node.inputs, graph.num_values(), true) ||
        !ids_exist(node.outputs, graph.num_values(), false)) {
      return broken(graph, id, "it refers to a value that does not exist");
    }
    if (node.kind == NodeKind::kExec && node.op == nullptr) return broken(graph, id, "no operator");
    return Status::ok();
  });
}

Status check_region_tree(const Graph& graph) {
  std::vector<int> seen(graph.num_nodes(), 0);
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    for (NodeId id : graph.region(RegionId(r)).nodes) {
      ++seen[id.index()];
      if (graph.node(id).region != RegionId(r)) {
        return broken(graph, id, "it is listed by a region it does not stand in");
      }
    }
  }
  return for_each_node(graph, [&](NodeId id, const Node& node) {
    if (seen[id.index()] != 1) return broken(graph, id, "it is not listed exactly once");
    for (RegionId region : node.regions) {
      if (graph.region(region).owner != id) return broken(graph, id, "a region has another owner");
    }
    return Status::ok();
  });
}

Status check_single_assignment(const Graph& graph) {
  std::vector<int> definitions(graph.num_values(), 0);
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    for (ValueId id : graph.region(RegionId(r)).parameters) ++definitions[id.index()];
  }
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    for (ValueId id : graph.node(NodeId(n)).outputs) ++definitions[id.index()];
  }
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    if (info.origin == ValueOrigin::kConstant) ++definitions[v];
    if (definitions[v] != 1) {
      return internal_error("graph invariant broken: value '" + info.name + "' (" +
                            std::to_string(v) + ") is assigned " + std::to_string(definitions[v]) +
                            " times");
    }
  }
  return Status::ok();
}

Status check_visibility(const Graph& graph) {
  std::vector<uint32_t> position(graph.num_nodes(), 0);
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    const auto& nodes = graph.region(RegionId(r)).nodes;
    for (size_t i = 0; i < nodes.size(); ++i) position[nodes[i].index()] = static_cast<uint32_t>(i);
  }
  const auto is_defined_before = [&](ValueId value, NodeId user) {
    const ValueInfo& info = graph.value(value);
    if (info.origin == ValueOrigin::kConstant) return true;
    NodeId at = user;  // the ancestor of `user` that stands in the value's region
    while (graph.node(at).region != info.region) {
      const NodeId owner = graph.region(graph.node(at).region).owner;
      if (owner.is_none()) return false;
      at = owner;
    }
    if (info.origin == ValueOrigin::kParameter) return true;
    return position[info.producer.index()] < position[at.index()];
  };
  EDDY_RETURN_IF_ERROR(for_each_node(graph, [&](NodeId id, const Node& node) {
    for (ValueId input : node.inputs) {
      if (!input.is_none() && !is_defined_before(input, id)) {
        return broken(graph, id, "an input is not defined before it");
      }
    }
    return Status::ok();
  }));
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    for (ValueId result : graph.region(RegionId(r)).results) {
      const ValueInfo& info = graph.value(result);
      if (info.origin != ValueOrigin::kConstant && !is_around(graph, info.region, RegionId(r))) {
        return internal_error("graph invariant broken: a region's result is not visible in it");
      }
    }
  }
  return Status::ok();
}

Status check_captures(const Graph& graph) {
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    const Region& region = graph.region(RegionId(r));
    if (!std::is_sorted(region.captures.begin(), region.captures.end())) {
      return internal_error("graph invariant broken: captures are not sorted");
    }
    const auto is_missing = [&](ValueId id) {
      const ValueInfo& info = graph.value(id);
      return info.origin != ValueOrigin::kConstant && info.region != RegionId(r) &&
             !std::binary_search(region.captures.begin(), region.captures.end(), id);
    };
    for (NodeId node : region.nodes) {
      for (ValueId input : graph.node(node).inputs) {
        if (!input.is_none() && is_missing(input))
          return broken(graph, node, "a capture is missing");
      }
    }
    if (std::any_of(region.results.begin(), region.results.end(), is_missing)) {
      return internal_error("graph invariant broken: a captured result is not listed");
    }
  }
  return Status::ok();
}

namespace {

Status check_while_arity(const Graph& graph, NodeId id, const Node& node) {
  if (node.regions.size() != 2) return broken(graph, id, "a while has two regions");
  const Region& before = graph.region(node.regions[0]);
  const Region& after = graph.region(node.regions[1]);
  const size_t carried = node.inputs.size() - 1;
  if (before.parameters.size() != carried + 1 || after.parameters.size() != before.results.size() ||
      after.results.size() != carried + node.num_scan_outputs ||
      node.outputs.size() != before.results.size() - 1 + node.num_scan_outputs) {
    return broken(graph, id, "the numbers of carried, forwarded and stacked values do not fit");
  }
  return Status::ok();
}

}  // namespace

Status check_control_arity(const Graph& graph) {
  return for_each_node(graph, [&](NodeId id, const Node& node) {
    if (node.kind == NodeKind::kWhile) return check_while_arity(graph, id, node);
    if (node.kind == NodeKind::kExec) {
      return node.regions.empty() ? Status::ok() : broken(graph, id, "an exec node has regions");
    }
    for (RegionId region : node.regions) {
      if (graph.region(region).results.size() != node.outputs.size() ||
          !graph.region(region).parameters.empty()) {
        return broken(graph, id, "a branch does not fit the node's outputs");
      }
    }
    return Status::ok();
  });
}

}  // namespace validate_internal

Status validate(const Graph& graph) {
  using namespace validate_internal;
  EDDY_RETURN_IF_ERROR(check_ids(graph));
  EDDY_RETURN_IF_ERROR(check_region_tree(graph));
  EDDY_RETURN_IF_ERROR(check_single_assignment(graph));
  EDDY_RETURN_IF_ERROR(check_visibility(graph));
  EDDY_RETURN_IF_ERROR(check_captures(graph));
  return check_control_arity(graph);
}

}  // namespace eddy
