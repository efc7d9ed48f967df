#include "runtime/execute/output_routes.h"

#include <algorithm>

#include "runtime/execute/temporaries.h"

namespace eddy {
namespace {

class Follower {
 public:
  explicit Follower(const Graph& graph) : graph_(graph) {}

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
    if (!is_made_in(info.region, region) || !info.type.is_tensor()) return;
    if (std::ranges::find(seen_, value) != seen_.end()) return;
    seen_.push_back(value);
    if (info.origin == ValueOrigin::kParameter) return follow_carried(value, std::move(way));
    if (info.origin != ValueOrigin::kNodeOutput) return;
    const Node& node = graph_.node(info.producer);
    switch (node.kind) {
      case NodeKind::kExec:
        return follow_exec(value, node, std::move(way));
      case NodeKind::kWhile:
        return follow_loop(value, node, std::move(way));
      case NodeKind::kCaseOf:
        way.passed.push_back(value);
        for (const RegionId branch : node.regions) {
          follow(graph_.region(branch).results[info.index], branch, way);
        }
        return;
    }
  }

  // The two regions of a loop take turns: what `before` makes, `after` may pass on.
  bool is_made_in(RegionId home, RegionId region) const {
    if (home == region) return true;
    const NodeId owner = graph_.region(region).owner;
    return !owner.is_none() && owner == graph_.region(home).owner &&
           graph_.node(owner).kind == NodeKind::kWhile;
  }

  void follow_exec(ValueId value, const Node& node, Way way) {
    const bool is_view = node.op->is_view && graph_.value(value).index == 0;
    if (is_view && !node.inputs.empty() && !node.inputs[0].is_none()) {
      way.passed.push_back(value);
      return follow(node.inputs[0], node.region, std::move(way));
    }
    if (node.op->is_value_op || node.op->is_view) return;
    if (node.op->may_append && !graph_.value(value).type.tensor.is_static()) return;
    end_at(value, std::move(way));
  }

  void follow_loop(ValueId value, const Node& node, Way way) {
    const Region& before = graph_.region(node.regions[0]);
    const size_t forwarded = graph_.value(value).index + size_t{1};
    if (forwarded >= before.results.size()) {
      return end_at(value, std::move(way));  // stacked rows
    }
    way.passed.push_back(value);
    way.turns.push_back({before.owner, {}, 0, {}});
    follow(before.results[forwarded], node.regions[0], std::move(way));
  }

  // A parameter of `before`: its next value is made while this one, and what stands for it within
  // the loop, may still be read.
  void follow_carried(ValueId value, Way way) {
    const ValueInfo& parameter = graph_.value(value);
    const NodeId owner = graph_.region(parameter.region).owner;
    if (owner.is_none() || parameter.index == 0) return;
    const Node& loop = graph_.node(owner);
    if (loop.kind != NodeKind::kWhile) return;
    std::erase_if(way.passed,
                  [&](ValueId name) { return is_within(graph_.value(name).region, loop); });
    OutputTurn& turn = way.turns.back();  // of this loop: inner ones were left by their results
    ++turn.num_carried;
    turn.parameter = value;
    const Region& after = graph_.region(loop.regions[1]);
    follow(after.results[parameter.index - size_t{1}], loop.regions[1], std::move(way));
  }

  void end_at(ValueId made, Way way) {
    for (OutputTurn& turn : way.turns) turn.node = holder(graph_.value(made).producer, turn.loop);
    routes_.push_back({made, std::move(way.passed), std::move(way.turns)});
  }

  // The node right inside the loop that is `node` or holds it.
  NodeId holder(NodeId node, NodeId loop) const {
    for (;;) {
      const NodeId owner = graph_.region(graph_.node(node).region).owner;
      if (owner == loop) return node;
      node = owner;
    }
  }

  bool is_within(RegionId region, const Node& loop) const {
    for (;;) {
      if (region == loop.regions[0] || region == loop.regions[1]) return true;
      const NodeId owner = graph_.region(region).owner;
      if (owner.is_none()) return false;
      region = graph_.node(owner).region;
    }
  }

  const Graph& graph_;
  std::vector<ValueId> seen_;
  std::vector<OutputRoute> routes_;
};

}  // namespace

OutputRoutes find_output_routes(const Graph& graph) {
  OutputRoutes routes;
  for (const ValueId output : graph.outputs()) routes.push_back(Follower(graph).run(output));
  return routes;
}

}  // namespace eddy
