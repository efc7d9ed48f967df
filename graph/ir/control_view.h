// LoopView, CaseView: the parts of a control node by name, so that no reader counts positions.
//
//   initial[k] ──► carried[k] ◄──────────────────────────────── next[k]      before: iteration,
//                     before ──► predicate                        ▲          carried
//                            ──► forwarded[k] ──► received[k] ── after       after:
//                            after_iteration,
//                                     │                           │          received
//                                     └──► outputs[k]             └──► rows[s], stacked[s]
//
// What they mean: the head of graph.h. role() returns which of these regions one is.
//
// Contract: of a node of that kind (CHECK). A view borrows graph and node and looks each part up
// when it is read, so it may be made while a builder still adds the later parts.
// Cost: O(1) each.
#pragma once

#include <cstdint>
#include <span>

#include "graph/base/check.h"
#include "graph/ir/graph.h"

namespace eddy {

class LoopView {
 public:
  using Values = std::span<const ValueId>;

  LoopView(const Graph& graph, const Node& node) : graph_(graph), node_(node) {
    EDDY_CHECK(node.kind == NodeKind::kWhile) << node.name << " is no loop";
  }
  LoopView(const Graph& graph, NodeId id) : LoopView(graph, graph.node(id)) {}

  const Node& node() const { return node_; }
  RegionId before_id() const {
    EDDY_DCHECK(!node_.regions.empty()) << node_.name << " has no regions yet";
    return node_.regions[0];
  }
  RegionId after_id() const {
    EDDY_DCHECK(node_.regions.size() == 2) << node_.name << " has no `after` yet";
    return node_.regions[1];
  }
  const Region& before() const { return graph_.region(before_id()); }
  const Region& after() const { return graph_.region(after_id()); }
  // Whether it is one of the two, not deeper inside.
  bool has(RegionId region) const { return region == before_id() || region == after_id(); }

  ValueId trip_limit() const { return node_.inputs[0]; }  // may be none
  Values initial() const { return Values(node_.inputs).subspan(1); }
  size_t num_carried() const {
    EDDY_DCHECK(!node_.inputs.empty()) << node_.name << " has no place for a trip limit";
    return node_.inputs.size() - 1;
  }

  ValueId iteration() const { return before().parameters[0]; }
  Values carried() const { return Values(before().parameters).subspan(1); }
  ValueId predicate() const { return before().results[0]; }
  Values forwarded() const { return Values(before().results).subspan(1); }
  size_t num_forwarded() const {
    EDDY_DCHECK(!before().results.empty()) << node_.name << " has no predicate";
    return before().results.size() - 1;
  }

  ValueId after_iteration() const { return after().parameters[0]; }
  Values received() const { return Values(after().parameters).subspan(1); }
  Values next() const { return Values(after().results).first(num_carried()); }
  Values rows() const { return Values(after().results).subspan(num_carried()); }

  Values outputs() const { return Values(node_.outputs).first(num_forwarded()); }
  Values stacked() const { return Values(node_.outputs).subspan(num_forwarded()); }

 private:
  const Graph& graph_;
  const Node& node_;
};

class CaseView {
 public:
  using Values = std::span<const ValueId>;

  CaseView(const Graph& graph, const Node& node) : graph_(graph), node_(node) {
    EDDY_CHECK(node.kind == NodeKind::kCaseOf) << node.name << " is no case-of";
  }
  CaseView(const Graph& graph, NodeId id) : CaseView(graph, graph.node(id)) {}

  const Node& node() const { return node_; }
  ValueId selector() const { return node_.inputs[0]; }
  size_t num_branches() const { return node_.regions.size(); }
  Values results(size_t branch) const {
    EDDY_DCHECK(branch < num_branches()) << "branch " << branch << " of " << node_.name;
    return graph_.region(node_.regions[branch]).results;
  }
  bool has_pass_through() const { return node_.inputs.size() > 1; }
  Values pass_through() const { return Values(node_.inputs).subspan(1); }
  Values outputs() const { return node_.outputs; }

 private:
  const Graph& graph_;
  const Node& node_;
};

enum class RegionRole : uint8_t { kRoot, kBefore, kAfter, kBranch };

inline RegionRole role(const Graph& graph, RegionId region) {
  const NodeId owner = graph.region(region).owner;
  if (owner.is_none()) return RegionRole::kRoot;
  if (graph.node(owner).kind == NodeKind::kCaseOf) return RegionRole::kBranch;
  return LoopView(graph, owner).before_id() == region ? RegionRole::kBefore : RegionRole::kAfter;
}

// The parameter 0 of a loop's region.
inline bool is_iteration(const Graph& graph, ValueId value) {
  const ValueInfo& info = graph.value(value);
  return info.origin == ValueOrigin::kParameter && info.index == 0 && info.region != Graph::kRoot;
}

// A parameter of a loop's `before` that has a next value.
inline bool is_carried(const Graph& graph, ValueId value) {
  const ValueInfo& info = graph.value(value);
  return info.origin == ValueOrigin::kParameter && info.index > 0 &&
         role(graph, info.region) == RegionRole::kBefore;
}

// Whether they are one region, or the two that take turns in one loop.
inline bool are_in_one_iteration(const Graph& graph, RegionId a, RegionId b) {
  if (a == b) return true;
  const NodeId owner = graph.region(a).owner;
  return !owner.is_none() && owner == graph.region(b).owner &&
         graph.node(owner).kind == NodeKind::kWhile;
}

}  // namespace eddy
