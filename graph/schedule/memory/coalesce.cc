#include "graph/schedule/memory/coalesce.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "graph/ir/region_tree.h"

namespace eddy {
namespace {

class Coalescer {
 public:
  Coalescer(const Graph& graph, const NameLives& lives, const std::vector<bool>& is_planned)
      : graph_(graph), lives_(lives) {
    EDDY_DCHECK(is_planned.size() == graph.num_values()) << "one mark for each value";
    result_.of_root.resize(graph.num_values(), NameClasses::kNone);
    result_.turns.resize(graph.num_values(), Turn::kFirst);
    for (uint32_t v = 0; v < graph.num_values(); ++v) {
      if (!is_planned[v]) continue;
      result_.of_root[v] = static_cast<uint32_t>(result_.all.size());
      result_.all.push_back({{ValueId(v)}, NodeId()});
    }
  }

  // Inner loops first; what is handed on in each iteration before what is handed on once.
  NameClasses run(std::vector<NameEdge> edges) {
    std::ranges::stable_sort(edges, [](const NameEdge& a, const NameEdge& b) {
      if (a.depth != b.depth) return a.depth > b.depth;
      return priority(a.kind) < priority(b.kind);
    });
    for (const NameEdge& edge : edges) {
      const bool is_known = is_planned(edge.to) && is_planned(edge.from);
      if (!is_known || class_of(edge.to) == class_of(edge.from)) continue;
      join(edge);
    }
    return std::move(result_);
  }

 private:
  static int priority(AliasKind kind) {
    switch (kind) {
      case AliasKind::kNext:
        return 0;
      case AliasKind::kLeft:
        return 1;
      case AliasKind::kBranch:
        return 2;
      case AliasKind::kInitial:
        return 3;
      default:
        return 4;
    }
  }
  bool is_planned(ValueId root) const {
    return result_.of_root[root.index()] != NameClasses::kNone;
  }
  uint32_t class_of(ValueId root) const { return result_.of_root[root.index()]; }
  NameClasses::Class& members(ValueId root) { return result_.all[class_of(root)]; }

  void join(const NameEdge& edge) {
    const bool is_next = edge.kind == AliasKind::kNext;
    if (is_next && takes_turns(edge)) return alternate(edge);
    const NameClasses::Class& to = members(edge.to);
    const NameClasses::Class& from = members(edge.from);
    if (!are_apart(to, from)) return;
    if (to.loop.is_none() && from.loop.is_none()) return unite(edge.from, edge.to, Turn::kFirst);
    // Where an alternating class begins, and where it ends.
    if (edge.kind == AliasKind::kLeft && to.loop.is_none() && to.names.size() == 1) {
      return unite(edge.to, edge.from, result_.turns[edge.from.index()]);
    }
    const bool is_start = edge.kind == AliasKind::kInitial && from.loop.is_none() &&
                          result_.turns[edge.to.index()] == Turn::kCurrent;
    if (is_start && is_plain(from, to.loop)) unite(edge.from, edge.to, Turn::kFirst);
  }

  // Made outside the loop, and carried by none.
  bool is_plain(const NameClasses::Class& names, NodeId loop) const {
    return std::ranges::all_of(names.names, [&](ValueId name) {
      return graph_.value(name).origin == ValueOrigin::kNodeOutput && !lives_.is_inside(name, loop);
    });
  }

  bool are_apart(const NameClasses::Class& a, const NameClasses::Class& b) const {
    if (a.names.size() + b.names.size() > kMaxClassNames) return false;
    return std::ranges::all_of(a.names, [&](ValueId x) {
      return std::ranges::all_of(b.names, [&](ValueId y) { return lives_.are_apart(x, y); });
    });
  }

  // The parameter and its next value need an address each, or gain by it.
  bool takes_turns(const NameEdge& edge) {
    if (members(edge.to).names.size() > 1 || members(edge.from).names.size() > 1) return false;
    const ValueInfo& next = graph_.value(edge.from);
    const ValueInfo& parameter = graph_.value(edge.to);
    const bool is_made_here = next.origin == ValueOrigin::kNodeOutput &&
                              graph_.node(next.producer).kind == NodeKind::kExec &&
                              are_in_one_iteration(graph_, next.region, parameter.region);
    if (!is_made_here) return false;
    if (!lives_.are_apart(edge.to, edge.from)) return true;
    return role(graph_, next.region) == RegionRole::kAfter && lives_.is_used_elsewhere(edge.from);
  }
  void alternate(const NameEdge& edge) {
    const NodeId loop = graph_.region(graph_.value(edge.to).region).owner;
    EDDY_DCHECK(!loop.is_none() && members(edge.to).loop.is_none())
        << "value " << edge.to.index() << " alternates with several loops";
    unite(edge.from, edge.to, Turn::kNext);
    members(edge.to).loop = loop;
    result_.turns[edge.to.index()] = Turn::kCurrent;
  }

  // All of the first's class go to the second's.
  void unite(ValueId first, ValueId second, Turn turn) {
    const uint32_t into = class_of(second);
    EDDY_DCHECK(class_of(first) != into) << "value " << first.index() << " joins its own class";
    for (const ValueId name : std::exchange(members(first).names, {})) {
      result_.of_root[name.index()] = into;
      result_.turns[name.index()] = turn;
      result_.all[into].names.push_back(name);
    }
  }

  const Graph& graph_;
  const NameLives& lives_;
  NameClasses result_;
};

}  // namespace

bool NameClasses::is_copy(const NameEdge& edge) const {
  EDDY_DCHECK(of_root[edge.to.index()] != kNone) << edge.to.index() << " is not planned";
  if (of_root[edge.from.index()] != of_root[edge.to.index()]) return true;
  const Turn to = turns[edge.to.index()];
  const Turn from = turns[edge.from.index()];
  const bool alternates = !all[of_root[edge.to.index()]].loop.is_none();
  if (!alternates) return false;
  switch (edge.kind) {
    case AliasKind::kNext:
      return to != Turn::kCurrent || from != Turn::kNext;
    case AliasKind::kInitial:
      return to != Turn::kCurrent || from != Turn::kFirst;
    default:
      return to != from;
  }
}

NameClasses coalesce(const Graph& graph, const NameLives& lives, std::vector<NameEdge> edges,
                     const std::vector<bool>& is_planned) {
  return Coalescer(graph, lives, is_planned).run(std::move(edges));
}

}  // namespace eddy
