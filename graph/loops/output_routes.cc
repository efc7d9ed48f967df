#include "graph/loops/output_routes.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/region_tree.h"

namespace eddy {
namespace {

class AliasFollower {
 public:
  explicit AliasFollower(const Graph& graph) : graph_(graph) {}

  std::vector<OutputRoute> run(ValueId output) {
    follow(output, Graph::kRoot, {});
    return std::move(routes_);
  }

 private:
  // The way so far.
  struct Way {
    std::vector<ValueId> passed;
    std::vector<OutputTurn> turns;
  };

  // `name` is met in `region`; where its value comes from elsewhere it is captured.
  void follow(ValueId name, RegionId region, Way way) {
    const ValueId value = resolve_forwarded(graph_, name);
    const ValueInfo& info = graph_.value(value);
    const bool is_captured = !are_in_one_iteration(graph_, info.region, region);
    if (is_captured || !info.type.is_tensor()) return;
    if (std::ranges::find(seen_, value) != seen_.end()) return;
    seen_.push_back(value);
    const std::vector<AliasSource> sources = alias_sources(graph_, value);
    if (sources.empty()) return end_at(value, std::move(way));
    for (const AliasSource& source : sources) {
      if (source.kind == AliasKind::kInitial || source.kind == AliasKind::kPassThrough) continue;
      follow(source.value, source.region, continued(way, value, source.kind));
    }
  }

  // The way over `value`, which is a name that its source has there.
  Way continued(Way way, ValueId value, AliasKind kind) const {
    const ValueInfo& info = graph_.value(value);
    if (kind != AliasKind::kNext) {
      way.passed.push_back(value);
      if (kind == AliasKind::kLeft) way.turns.push_back({info.producer, {}, 0, {}});
      return way;
    }
    // A parameter of `before`: its next value is made while this one, and what stands for it within
    // the loop, may still be read.
    const RegionTree tree(graph_);
    const NodeId loop = tree.owner(info.region);
    std::erase_if(way.passed,
                  [&](ValueId name) { return tree.is_inside(graph_.value(name).region, loop); });
    EDDY_CHECK(!way.turns.empty() && way.turns.back().loop == loop)
        << graph_.node(loop).name << " was not left on the way";
    OutputTurn& turn = way.turns.back();  // of this loop: inner ones were left by their results
    ++turn.num_carried;
    turn.parameter = value;
    return way;
  }

  // Where an exec node writes the value, or a loop stacks it.
  void end_at(ValueId made, Way way) {
    const ValueInfo& info = graph_.value(made);
    if (info.origin != ValueOrigin::kNodeOutput) return;
    const Node& node = graph_.node(info.producer);
    if (node.kind == NodeKind::kExec) {
      if (node.op->is_value_op || node.op->is_view) return;
      if (node.op->may_append && !info.type.tensor.is_static()) return;
    }
    for (OutputTurn& turn : way.turns) turn.node = holder(info.producer, turn.loop);
    routes_.push_back({made, std::move(way.passed), std::move(way.turns)});
  }

  // The node right inside the loop that is `node` or holds it.
  NodeId holder(NodeId node, NodeId loop) const {
    const RegionTree tree(graph_);
    EDDY_CHECK(tree.is_inside(graph_.node(node).region, loop))
        << graph_.node(node).name << " stands outside " << graph_.node(loop).name;
    while (tree.owner(graph_.node(node).region) != loop) {
      node = tree.owner(graph_.node(node).region);
    }
    return node;
  }

  const Graph& graph_;
  std::vector<ValueId> seen_;
  std::vector<OutputRoute> routes_;
};

}  // namespace

OutputRoutes find_output_routes(const Graph& graph) {
  OutputRoutes routes;
  for (const ValueId output : graph.outputs()) routes.push_back(AliasFollower(graph).run(output));
  return routes;
}

}  // namespace eddy
