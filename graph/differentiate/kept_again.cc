// The part of KeptValues about loops whose iterations are made again.
#include <algorithm>

#include "graph/base/check.h"
#include "graph/compile/equal_nodes.h"
#include "graph/differentiate/kept_values.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"

namespace eddy {
namespace {

// The same inputs give the same bits, and nobody sees that it ran once more.
bool is_repeatable(const Node& node) {
  if (node.kind != NodeKind::kExec) return true;
  const bool is_own = node.op->domain.empty() || node.op->domain == "eddy";
  return is_own && !node.op->may_wait && !draws_random_numbers(node) && !calls_host_function(node);
}

// None: all nodes inside are.
NodeId find_unrepeatable(const Graph& graph, const Node& node) {
  for (const RegionId region : node.regions) {
    for (const NodeId id : graph.region(region).nodes) {
      const Node& inner = graph.node(id);
      if (!is_repeatable(inner)) return id;
      const NodeId deeper = find_unrepeatable(graph, inner);
      if (!deeper.is_none()) return deeper;
    }
  }
  return {};
}

// Whether anything inside reads or makes a value that is no tensor, those of the root left out.
bool has_sequences(const Graph& graph, const Node& node) {
  const auto is_other = [&](ValueId id) {
    return !id.is_none() && graph.value(id).region != Graph::kRoot &&
           !graph.value(id).type.is_tensor();
  };
  for (const RegionId region : node.regions) {
    if (std::ranges::any_of(graph.region(region).parameters, is_other)) return true;
    for (const NodeId id : graph.region(region).nodes) {
      const Node& inner = graph.node(id);
      const bool has_others = std::ranges::any_of(inner.inputs, is_other) ||
                              std::ranges::any_of(inner.outputs, is_other);
      if (has_others || has_sequences(graph, inner)) return true;
    }
  }
  return false;
}

// Empty: the loop's iterations can be made again from states.
std::string why_not_again(const Graph& graph, NodeId loop) {
  const NodeId node = find_unrepeatable(graph, graph.node(loop));
  if (!node.is_none()) {
    return graph.path(node) + " (" + graph.node(node).op->name +
           ") may give something else when it runs again";
  }
  return has_sequences(graph, graph.node(loop))
             ? "it makes or reads a sequence or an optional, which no state holds"
             : "";
}

}  // namespace

void KeptValues::choose_policies(const SavePolicies& policies) {
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    const NodeId id(n);
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::kWhile || !activity_.is_active(node)) continue;
    const SavePolicy& asked = policies.of(graph_.path(id));
    if (asked.kind == SavePolicy::Kind::kAll) continue;
    why_all_[n] = why_not_again(graph_, id);
    if (why_all_[n].empty()) policies_[n] = asked;
  }
}

std::string KeptValues::why_all(NodeId loop) const { return why_all_[loop.index()]; }

bool KeptValues::has_state_rows(NodeId loop) const {
  return !policy(loop).has_segments() &&
         std::ranges::all_of(state(loop), [&](const Kept& item) { return may_be_row(item); });
}

std::set<ElementType> KeptValues::inner_tapes(const LoopView& loop) const {
  std::set<ElementType> all = tapes(loop.before_id());
  all.insert(tapes(loop.after_id()).begin(), tapes(loop.after_id()).end());
  return all;
}

// What is made again of one loop.
class KeptValues::Slice {
 public:
  // `goes_on`: the next state is, too.
  Slice(KeptValues& kept, const LoopView& loop, bool goes_on)
      : kept_(kept), graph_(kept.graph_), loop_(loop), goes_on_(goes_on) {}

  void add(ValueId value) {
    if (!value.is_none() && values_.insert(value).second) pending_.push_back(value);
  }

  void add(NodeId id) {
    if (!nodes_.insert(id).second) return;
    const Node& node = graph_.node(id);
    for (const ValueId input : node.inputs) add(input);
    const RegionTree tree(graph_);
    for_each_use_inside(graph_, node, [&](ValueId value) {
      if (!value.is_none() && !tree.is_inside(graph_.value(value).region, id)) add(value);
    });
  }

  // And all from which they are made.
  void complete() {
    while (!pending_.empty()) {
      const ValueId value = pending_.back();
      pending_.pop_back();
      follow(value);
    }
  }

  bool has(NodeId node) const { return nodes_.contains(node); }
  const std::set<size_t>& carried() const { return carried_; }

 private:
  void follow(ValueId value) {
    const ValueInfo& info = graph_.value(value);
    if (info.origin == ValueOrigin::kConstant || !loop_.has(info.region)) {
      kept_.need_value(value, loop_.before_id());
    } else if (info.origin == ValueOrigin::kNodeOutput) {
      add(info.producer);
    } else if (info.index > 0 && info.region == loop_.after_id()) {
      EDDY_DCHECK(info.index <= loop_.num_forwarded()) << "nothing is forwarded to " << info.index;
      add(loop_.forwarded()[info.index - 1]);
    } else if (info.index > 0) {
      EDDY_DCHECK(info.index <= loop_.num_carried()) << "nothing is carried to " << info.index;
      carried_.insert(info.index - 1);
      if (goes_on_) add(loop_.next()[info.index - 1]);
    }
  }

  KeptValues& kept_;
  const Graph& graph_;
  const LoopView& loop_;
  const bool goes_on_;
  std::set<NodeId> nodes_;
  std::set<ValueId> values_;
  std::set<size_t> carried_;
  std::vector<ValueId> pending_;
};

// Both regions of the loop are collected.
void KeptValues::choose_state(NodeId id) {
  EDDY_DCHECK(policy(id).kind != SavePolicy::Kind::kAll && state(id).empty())
      << graph_.path(id) << " keeps all, or has its state";
  const LoopView loop(graph_, id);
  Slice slice(*this, loop, policy(id).has_segments());
  for (const RegionId region : {loop.before_id(), loop.after_id()}) {
    for (const NodeId node : graph_.region(region).nodes) {
      const bool records = graph_.node(node).kind != NodeKind::kExec;
      if (records && activity_.is_active(graph_.node(node))) slice.add(node);
    }
    for (const Kept& item : of(region)) {
      const bool is_made_here = item.form == Kept::Form::kItself && item.what != Kept::What::kTrips;
      if (is_made_here) slice.add(ValueId(item.index));
    }
  }
  slice.complete();
  auto& state = states_[id.index()];
  for (const size_t k : slice.carried()) {
    state.push_back({Kept::What::kValue, loop.carried()[k].index()});
  }
  const RegionId outer = loop.node().region;
  for (const Kept& item : state) {
    need(item.as(Kept::Form::kLast), outer);
    if (has_state_rows(id)) need(item.as(Kept::Form::kRows), outer);
  }
  const std::set<ElementType> external = tapes(loop.node());
  tapes_[outer.index()].insert(external.begin(), external.end());
  uses_rows_[id.index()] = policy(id).has_segments() && fit_rows(loop);
  for (const RegionId region : {loop.before_id(), loop.after_id()}) {
    for (const NodeId node : graph_.region(region).nodes) {
      if (slice.has(node)) again_[region.index()].push_back(node);
    }
    auto& kept = kept_[region.index()];
    if (!policy(id).has_segments()) kept.clear();
    if (uses_rows(id)) continue;
    for (const Kept& item : kept) tapes_[region.index()].insert(element(item));
  }
}

}  // namespace eddy
