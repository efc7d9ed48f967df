#include "graph/ir/graph.h"

namespace eddy {

std::string Graph::path(NodeId id) const {
  std::string text = node(id).name;
  RegionId at = node(id).region;
  while (!region(at).owner.is_none()) {
    const Node& owner = node(region(at).owner);
    std::string prefix = owner.name + "/";
    if (owner.kind == NodeKind::kCaseOf) prefix += region(at).name + "/";
    text.insert(0, prefix);
    at = owner.region;
  }
  return text;
}

}  // namespace eddy
