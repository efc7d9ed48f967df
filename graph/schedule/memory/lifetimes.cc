#include "graph/schedule/memory/lifetimes.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

void Lifetimes::keep_one_a_stream(std::vector<NodeId>& nodes, bool keep_first) const {
  std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
    if (order_.stream(a) != order_.stream(b)) return order_.stream(a) < order_.stream(b);
    return (order_.position(a) < order_.position(b)) == keep_first &&
           order_.position(a) != order_.position(b);
  });
  const auto same_stream = [this](NodeId a, NodeId b) {
    return order_.stream(a) == order_.stream(b);
  };
  nodes.erase(std::unique(nodes.begin(), nodes.end(), same_stream), nodes.end());
  nodes.shrink_to_fit();
}

Lifetime Lifetimes::lifetime(RegionId home, std::span<const Access> accesses) const {
  Lifetime result;
  result.home = home;
  for (const Access& access : accesses) {
    const bool is_inside = access.region != home;
    const NodeId node = is_inside ? tree_.container(access.region, home) : access.node;
    if (node.is_none()) {
      result.lasts_to_end = true;
      continue;
    }
    result.touches.push_back(node);
    if (access.is_write) result.writes.push_back(node);
  }
  keep_one_a_stream(result.touches, false);
  keep_one_a_stream(result.writes, true);
  return result;
}

Lifetime Lifetimes::united(Lifetime a, const Lifetime& b) const {
  EDDY_CHECK(a.home == b.home) << "lifetimes of two regions";
  a.touches.insert(a.touches.end(), b.touches.begin(), b.touches.end());
  a.writes.insert(a.writes.end(), b.writes.begin(), b.writes.end());
  a.lasts_to_end |= b.lasts_to_end;
  keep_one_a_stream(a.touches, false);
  keep_one_a_stream(a.writes, true);
  return a;
}

bool Lifetimes::exclude(RegionId a, RegionId b) const {
  if (a == b) return false;
  const RegionId meeting = tree_.common(a, b);
  const NodeId in_a = tree_.container(a, meeting);
  return !in_a.is_none() && in_a == tree_.container(b, meeting);
}

bool Lifetimes::overlap_across(const Lifetime& a, const Lifetime& b) const {
  const RegionId meeting = tree_.common(a.home, b.home);
  const NodeId in_a = tree_.container(a.home, meeting);
  const NodeId in_b = tree_.container(b.home, meeting);
  // Regions of one node exclude each other, or take turns.
  if (!in_a.is_none() && in_a == in_b) return false;
  // The whole of a loop or branch stands for what lives inside.
  const auto nodes = [](const NodeId& container, const std::vector<NodeId>& own) {
    return container.is_none() ? std::span(own) : std::span(&container, 1);
  };
  const auto ends_before = [&](const Lifetime& first, const NodeId& in_first,
                               const Lifetime& second, const NodeId& in_second) {
    return !(in_first.is_none() && first.lasts_to_end) &&
           precede(nodes(in_first, first.touches), nodes(in_second, second.writes));
  };
  return !ends_before(a, in_a, b, in_b) && !ends_before(b, in_b, a, in_a);
}

}  // namespace eddy
