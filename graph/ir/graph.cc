#include "graph/ir/graph.h"

#include <algorithm>
#include <functional>

#include "graph/base/check.h"

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

namespace {

// Where the constants that are still there begin, attributes' included; sorted.
std::vector<const std::byte*> live_addresses(std::span<const Constant> constants,
                                             std::span<const Node> nodes) {
  std::vector<const std::byte*> live;
  const auto add = [&](const Constant& constant) {
    if (constant.data != nullptr) live.push_back(static_cast<const std::byte*>(constant.data));
  };
  for (const Constant& constant : constants) add(constant);
  for (const Node& node : nodes) {
    for (const Attributes::Entry& entry : node.attributes.entries()) {
      if (const auto* constant = std::get_if<Constant>(&entry.value)) add(*constant);
    }
  }
  std::ranges::sort(live, std::less<>());
  return live;
}

}  // namespace

void Graph::release_constants(std::span<const ConstantId> unread) {
  for (ConstantId id : unread) {
    EDDY_CHECK(id.index() < constants_.size()) << "constant " << id.index() << " of another graph";
    constants_[id.index()].data = nullptr;
  }
  const auto live = live_addresses(constants_, nodes_);
  std::erase_if(blobs_, [&](const std::shared_ptr<Blob>& blob) {
    const std::span<const std::byte> bytes = blob->bytes();
    if (bytes.empty()) return false;
    const auto first = std::ranges::lower_bound(live, bytes.data(), std::less<>());
    const bool is_used = first != live.end() && std::less<>()(*first, bytes.data() + bytes.size());
    if (is_used) blob->evict();
    return !is_used;
  });
}

}  // namespace eddy
