#include "graph/schedule/memory/name_lives.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"

namespace eddy {

std::vector<ValueId> find_roots(const Graph& graph) {
  std::vector<ValueId> roots(graph.num_values());
  std::vector<ValueId> passed;
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    passed.clear();
    ValueId at(v);
    while (roots[at.index()].is_none()) {
      passed.push_back(at);
      const ValueId forwarded = resolve_forwarded(graph, at);
      const ValueId source = forwarded == at ? viewed(graph, at) : forwarded;
      if (source.is_none()) roots[at.index()] = at;
      if (!source.is_none()) at = source;
    }
    for (const ValueId value : passed) roots[value.index()] = roots[at.index()];
  }
  return roots;
}

NameLives::NameLives(const Graph& graph, const NodeOrder& order, const std::vector<ValueId>& roots)
    : graph_(graph), tree_(graph), order_(order), roots_(roots), uses_(graph.num_values()) {
  EDDY_DCHECK(roots.size() == graph.num_values()) << "one root for each value";
  add_uses();
}

void NameLives::add_uses() {
  const auto add = [&](ValueId value, const Event& event) {
    if (value.is_none()) return;
    const ValueId root = roots_[value.index()];
    if (graph_.value(root).origin == ValueOrigin::kConstant) return;
    uses_[root.index()].push_back(widened(event, made(root).region));
  };
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    const Node& node = graph_.node(NodeId(n));
    // What loops and cases read themselves they read before their regions run.
    const When when = node.kind == NodeKind::kExec ? When::kInside : When::kAtStart;
    for (const ValueId value : node.inputs) add(value, {node.region, NodeId(n), when});
  }
  for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
    for (const ValueId value : graph_.region(RegionId(r)).results) {
      add(value, {RegionId(r), NodeId(), When::kAtEnd});
    }
  }
}

// The one that stands for both regions of a loop.
RegionId NameLives::iteration_of(RegionId region) const {
  const NodeId owner = tree_.owner(region);
  if (owner.is_none() || graph_.node(owner).kind != NodeKind::kWhile) return region;
  const std::vector<RegionId>& both = graph_.node(owner).regions;
  return std::min(both[0], both[1]);
}

NameLives::Event NameLives::made(ValueId root) const {
  EDDY_DCHECK(roots_[root.index()] == root) << "value " << root.index() << " is a further name";
  const ValueInfo& info = graph_.value(root);
  if (info.origin != ValueOrigin::kNodeOutput) return {info.region, NodeId(), When::kAtStart};
  const bool is_exec = graph_.node(info.producer).kind == NodeKind::kExec;
  return {info.region, info.producer, is_exec ? When::kInside : When::kAtEnd};
}

NameLives::Event NameLives::widened(Event event, RegionId home) const {
  const RegionId end = iteration_of(home);
  for (RegionId at = event.region; at != Graph::kRoot && iteration_of(at) != end;) {
    const NodeId owner = tree_.owner(at);
    at = graph_.node(owner).region;
    if (graph_.node(owner).kind == NodeKind::kWhile) event = {at, owner, When::kInside};
  }
  return event;
}

NameLives::Event NameLives::lifted(Event event, RegionId iteration) const {
  while (iteration_of(event.region) != iteration) {
    const NodeId owner = tree_.owner(event.region);
    event = {graph_.node(owner).region, owner, When::kInside, event.region};
  }
  return event;
}

bool NameLives::precedes(Event a, Event b) const {
  RegionId x = iteration_of(a.region);
  RegionId y = iteration_of(b.region);
  while (x != y) {  // the larger one is further inside
    RegionId& inner = x > y ? x : y;
    inner = iteration_of(tree_.parent(inner));
  }
  a = lifted(a, x);
  b = lifted(b, x);
  if (a.region != b.region) return role(graph_, a.region) == RegionRole::kBefore;
  if (a.node.is_none() || b.node.is_none()) {
    const bool is_first = a.node.is_none() && a.when == When::kAtStart;
    const bool is_last = b.node.is_none() && b.when == When::kAtEnd;
    const bool are_alike = a.node.is_none() && b.node.is_none() && a.when == b.when;
    return (is_first || is_last) && !are_alike;
  }
  if (a.node != b.node) return order_.precedes(a.node, b.node);
  if (a.when != b.when) return a.when < b.when;
  return a.when == When::kInside && graph_.node(a.node).kind == NodeKind::kCaseOf &&
         a.branch != b.branch;
}

// The node that makes `written` reads `read` for the last time, element for element.
bool NameLives::may_overwrite(ValueId read, ValueId written) const {
  const ValueInfo& info = graph_.value(written);
  if (info.origin != ValueOrigin::kNodeOutput || info.index != 0) return false;
  const Node& node = graph_.node(info.producer);
  if (node.kind != NodeKind::kExec || node.op->in_place_inputs == 0) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].is_none() || roots_[node.inputs[i].index()] != read) continue;
    const TensorType& from = graph_.value(node.inputs[i]).type.tensor;
    const TensorType& to = info.type.tensor;
    const bool is_allowed = i < 64 && (node.op->in_place_inputs >> i & 1) != 0;
    const bool is_alike = from.is_ranked && from.dims == to.dims &&
                          element_size_bytes(from.element) == element_size_bytes(to.element);
    if (!is_allowed || !is_alike) return false;
  }
  return true;
}

bool NameLives::ends_before(ValueId a, ValueId b) const {
  const Event begin = made(b);
  const auto is_over = [&](const Event& use) { return precedes(use, begin); };
  if (!is_over(made(a))) return false;
  // The last use decides most, and where many loops begin with one value only that is quick.
  const std::vector<Event>& uses = uses_[a.index()];
  if (std::all_of(uses.rbegin(), uses.rend(), is_over)) return true;
  if (!may_overwrite(a, b)) return false;
  return std::all_of(uses.rbegin(), uses.rend(), [&](const Event& use) {
    return is_over(use) || (use.node == begin.node && use.region == begin.region);
  });
}

bool NameLives::is_used_elsewhere(ValueId root) const {
  const Event maker = made(root);
  return std::ranges::any_of(uses_[root.index()], [&](const Event& use) {
    const bool is_within = use.region == maker.region || tree_.is_within(use.region, maker.region);
    if (!is_within) return false;
    const NodeId node =
        use.region == maker.region ? use.node : tree_.container(use.region, maker.region);
    return !node.is_none() && order_.stream(node) != order_.stream(maker.node);
  });
}

bool NameLives::is_inside(ValueId root, NodeId loop) const {
  return tree_.is_inside(graph_.value(root).region, loop);
}

}  // namespace eddy
