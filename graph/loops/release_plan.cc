#include "graph/loops/release_plan.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/schedule/memory/node_order.h"

namespace eddy {
namespace {

constexpr size_t kWindow = 64;  // nodes looked at behind the last reader

// The nodes that one block launches, in the order of issue.
std::vector<NodeId> launches_of(const Program& program, const Program::Block& block) {
  std::vector<NodeId> launches;
  for (const Program::Step& step : block.steps) {
    if (is_node(step.op)) launches.push_back(node_of(program, step));
  }
  return launches;
}

// The first launch that is behind all of `nodes`; none where there is no such launch nearby.
NodeId find_behind(const std::vector<NodeId>& launches, const NodeOrder& order,
                   const std::vector<NodeId>& nodes) {
  size_t first = 0;
  EDDY_CHECK(!nodes.empty()) << "what is behind no reader is behind nothing";
  for (NodeId node : nodes) first = std::max<size_t>(first, order.issue_position(node));
  const size_t end = std::min(launches.size(), first + kWindow);
  for (size_t at = first; at < end; ++at) {
    const auto is_seen = [&](NodeId node) {
      return node == launches[at] || order.precedes(node, launches[at]);
    };
    if (std::ranges::all_of(nodes, is_seen)) return launches[at];
  }
  return {};
}

// What happens to one value, under all its names.
struct Use {
  std::vector<NodeId> readers;        // in the region where it is defined
  std::vector<NodeId> after_readers;  // defined in `before`: in that loop's `after`
  bool is_forwarded = false;          // defined in `before`: the loop's results may take it
  bool is_kept = false;               // moved on at the end of a region
};

class Releases {
 public:
  Releases(const Graph& graph, const Plan& plan)
      : graph_(graph), plan_(plan), uses_(graph.num_values()), result_(graph.num_nodes()) {}

  ReleasePlan make() {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      for (ValueId value : node.inputs) {
        if (!value.is_none()) read(value, node.region, NodeId(n));
      }
    }
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      read_results(RegionId(r));
      keep_retained(plan_.program.blocks[r]);
    }
    by_region_.resize(graph_.num_regions());
    for (uint32_t v = 0; v < graph_.num_values(); ++v) sort_in(ValueId(v));
    NodeOrder order(graph_);
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      if (by_region_[r].empty()) continue;
      order.add(plan_.program, plan_.program.blocks[r]);
      const std::vector<NodeId> launches = launches_of(plan_.program, plan_.program.blocks[r]);
      for (const auto& [value, readers] : by_region_[r]) {
        const NodeId node = find_behind(launches, order, *readers);
        // What a pipelined loop's tail releases must be what it waits for itself.
        const bool is_known = !is_pipelined(plan_.program, plan_.program.blocks[r]) ||
                              std::ranges::find(*readers, node) != readers->end();
        if (!node.is_none() && is_known) result_[node.index()].push_back(value);
      }
    }
    return std::move(result_);
  }

 private:
  bool is_before(RegionId region) const { return role(graph_, region) == RegionRole::kBefore; }
  // True when `inner` is the `after` of the loop whose `before` is `outer`.
  bool is_after_of(RegionId inner, RegionId outer) const {
    return inner != outer && is_before(outer) && are_in_one_iteration(graph_, inner, outer);
  }

  // `node`, which stands in `region`, reads the value.
  void read(ValueId name, RegionId region, NodeId node) {
    const ValueId value = resolve_forwarded(graph_, name);
    const RegionId home = graph_.value(value).region;
    if (graph_.value(value).origin == ValueOrigin::kConstant) return;
    Use& use = uses_[value.index()];
    while (region != home && !is_after_of(region, home)) {
      EDDY_DCHECK(!graph_.region(region).owner.is_none())
          << "node " << node.index() << " reads " << value.index() << " out of its scope";
      node = graph_.region(region).owner;
      region = graph_.node(node).region;
    }
    (region == home ? use.readers : use.after_readers).push_back(node);
  }

  void read_results(RegionId region) {
    const Region& self = graph_.region(region);
    for (size_t k = 0; k < self.results.size(); ++k) {
      const ValueId value = resolve_forwarded(graph_, self.results[k]);
      const RegionId home = graph_.value(value).region;
      Use& use = uses_[value.index()];
      if (home == region && is_before(region) && k > 0) {
        use.is_forwarded = true;
      } else if (home == region || is_after_of(region, home)) {
        use.is_kept = true;
      } else if (!self.owner.is_none()) {
        read(value, graph_.node(self.owner).region, self.owner);
      }
    }
  }

  // Read by others than those that read it by name; made anew in the next iteration.
  void keep_retained(const Program::Block& block) {
    for (const Program::Step& step : block.steps) {
      if (step.op != Program::Op::kRetain) continue;
      for (const Program::Alias& alias : plan_.program.launches[step.operand].aliases) {
        uses_[resolve_forwarded(graph_, ValueId(alias.from)).index()].is_kept = true;
      }
    }
  }

  // Puts the value where its release is looked for, if it may be released at all.
  void sort_in(ValueId value) {
    const ValueInfo& info = graph_.value(value);
    if (info.type.is_static_tensor() || resolve_forwarded(graph_, value) != value) return;
    const bool is_parameter = is_carried(graph_, value);
    if (info.origin != ValueOrigin::kNodeOutput && !is_parameter) return;
    Use& use = uses_[value.index()];
    if (use.is_kept) return;
    if (!use.after_readers.empty()) {
      EDDY_CHECK(is_before(info.region)) << "value " << value.index() << " is of no `before`";
      const LoopView loop(graph_, graph_.region(info.region).owner);
      by_region_[loop.after_id().index()].emplace_back(value, &use.after_readers);
      return;
    }
    if (use.is_forwarded) return;
    if (use.readers.empty() && !is_parameter) use.readers.push_back(info.producer);
    if (!use.readers.empty()) by_region_[info.region.index()].emplace_back(value, &use.readers);
  }

  const Graph& graph_;
  const Plan& plan_;
  std::vector<Use> uses_;  // by the ValueId that names resolve to
  std::vector<std::vector<std::pair<ValueId, const std::vector<NodeId>*>>> by_region_;
  ReleasePlan result_;
};

}  // namespace

ReleasePlan plan_releases(const Graph& graph, const Plan& plan) {
  EDDY_CHECK(plan.program.blocks.size() == graph.num_regions()) << "the plan of another graph";
  return Releases(graph, plan).make();
}

}  // namespace eddy
