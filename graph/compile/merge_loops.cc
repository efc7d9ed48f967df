#include "graph/compile/merge_loops.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"

namespace eddy {
namespace {

bool is_alike(const ValueType& a, const ValueType& b) {
  return a.is_static_tensor() && b.is_static_tensor() && a.tensor.element == b.tensor.element &&
         a.tensor.dims == b.tensor.dims;
}

// Nodes of a region that need a result of any of `from`, by way of others too.
std::set<NodeId> find_dependents(const Graph& graph, RegionId region,
                                 std::span<const NodeId> from) {
  std::set<NodeId> found;
  for (const NodeId id : graph.region(region).nodes) {
    for_each_source(graph, id, [&](NodeId source) {
      const bool needs = found.contains(source) || std::ranges::count(from, source) > 0;
      if (needs) found.insert(id);
    });
  }
  return found;
}

bool reads_iteration(const Graph& graph, const LoopView& loop) {
  return std::ranges::any_of(loop.before().nodes, [&](NodeId id) {
    return std::ranges::count(graph.node(id).inputs, loop.iteration()) > 0;
  });
}

class LoopMerger : public GraphCopier {
 public:
  LoopMerger(const Graph& source, GraphBuilder& builder, std::span<const NodeId> siblings,
             const std::string& device)
      : GraphCopier(source, builder), siblings_(siblings), device_(device) {
    EDDY_CHECK(!siblings.empty()) << "no loop to merge";
    for (const NodeId id : siblings) {
      EDDY_CHECK(source.node(id).region == source.node(siblings[0]).region)
          << source.node(id).name << " stands in another region";
      const LoopView loop(source, id);
      EDDY_CHECK(loop.num_forwarded() == loop.num_carried() && loop.rows().empty())
          << loop.node().name << " can't be merged";
      lanes_.push_back({.loop = loop, .carries_going = reads_iteration(source, loop)});
      lane_of_region_[loop.before_id()] = lane_of_region_[loop.after_id()] = loop.node().name + "/";
    }
  }

 protected:
  // The merged loop stands where its last one did, behind it what needs any of them.
  std::vector<NodeId> order(RegionId region) override {
    std::vector<NodeId> nodes = GraphCopier::order(region);
    if (region != source_.node(siblings_[0]).region) return nodes;
    const std::set<NodeId> needs = find_dependents(source_, region, siblings_);
    const auto last = std::ranges::find(nodes, siblings_.back());
    EDDY_CHECK(last != nodes.end()) << "the last loop is not in its region";
    const auto behind = last + 1;
    std::stable_partition(nodes.begin(), behind, [&](NodeId id) { return !needs.contains(id); });
    return nodes;
  }

  void loop(NodeId id) override {
    if (std::ranges::count(siblings_, id) == 0) return GraphCopier::loop(id);
    if (id == siblings_.back()) merged();
  }

  std::string name_of(NodeId id) override {
    const Node& node = source_.node(id);
    const auto lane = lane_of_region_.find(node.region);
    return lane == lane_of_region_.end() ? node.name : lane->second + node.name;
  }

 private:
  struct Lane {
    LoopView loop;
    // Whether it goes on is carried: its `before` could return true again in a later iteration.
    bool carries_going = false;
    size_t first = 0;  // of its carried values
  };

  void merged() {
    WhileOptions options{.name = merged_name(source_, siblings_)};
    for (Lane& lane : lanes_) {
      lane.first = options.initial.size();
      for (size_t k = 0; k < lane.loop.num_carried(); ++k) {
        const ValueId carried = lane.loop.carried()[k];
        options.initial.push_back(handed_on(lane.loop.initial()[k], carried));
        options.carried_types.push_back(source_.value(carried).type);
      }
      if (!lane.carries_going) continue;
      options.initial.push_back(builder_.scalar(true));
      options.carried_types.push_back(std::nullopt);
    }
    options.trip_limit = limit();
    options.rebuild_on_widening = true;
    const std::vector<Value> made = builder_.while_loop(
        options, [&](Value iteration, ValueSpan carried) { return before(iteration, carried); },
        [&](Value iteration, ValueSpan forwarded) { return after(iteration, forwarded); });
    if (made.empty()) return;
    for (const Lane& lane : lanes_) {
      define_all(lane.loop.outputs(), ValueSpan(made).subspan(lane.first, lane.loop.num_carried()));
    }
  }

  // The limit of the loop that may go on longest; none, where one loop has none.
  Value limit() {
    std::vector<Value> limits;
    for (const Lane& lane : lanes_) {
      if (lane.loop.trip_limit().is_none()) return {};
      limits.push_back(scalar(awaited_by_host(lane.loop.trip_limit()), ""));
    }
    return builder_.op("Max", limits);
  }

  WhileTest before(Value iteration, ValueSpan carried) {
    EDDY_DCHECK(carried.size() >= lanes_.back().first + lanes_.back().loop.num_carried())
        << "lanes end behind the " << carried.size() << " values carried";
    WhileTest test{{}, {carried.begin(), carried.end()}};
    for (const Lane& lane : lanes_) {
      define(lane.loop.iteration(), iteration);
      define_all(lane.loop.carried(), carried.subspan(lane.first));
      nodes(lane.loop.before_id());
      Value goes_on = scalar(value(lane.loop.predicate()), device_);
      if (!lane.loop.trip_limit().is_none()) {
        const Value limit = scalar(value(lane.loop.trip_limit()), device_);
        goes_on = mask("And", {goes_on, mask("Less", {iteration, limit})});
      }
      if (lane.carries_going) {
        goes_on = mask("And", {goes_on, carried[lane.first + lane.loop.num_carried()]});
      }
      test.forwarded.push_back(goes_on);
      test.predicate = test.predicate.is_none() ? goes_on : mask("Or", {test.predicate, goes_on});
    }
    return test;
  }

  std::vector<Value> after(Value iteration, ValueSpan forwarded) {
    EDDY_DCHECK(forwarded.size() >= lanes_.size()) << "a lane does not say whether it goes on";
    std::vector<Value> next;
    const ValueSpan going = forwarded.last(lanes_.size());
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const Lane& lane = lanes_[i];
      define(lane.loop.after_iteration(), iteration);
      define_all(lane.loop.received(), forwarded.subspan(lane.first));
      nodes(lane.loop.after_id());
      for (size_t k = 0; k < lane.loop.num_carried(); ++k) {
        const Value made = handed_on(lane.loop.next()[k], lane.loop.carried()[k]);
        const Value last = forwarded[lane.first + k];
        const bool stays = made.id == last.id;
        next.push_back(stays ? last : mask("Where", {going[i], made, last}));
      }
      if (lane.carries_going) next.push_back(going[i]);
    }
    EDDY_DCHECK(next.size() + lanes_.size() == forwarded.size())
        << next.size() << " next values of " << forwarded.size() << " forwarded";
    return next;
  }

  Value mask(const char* op, std::initializer_list<Value> inputs) {
    return builder_.op(op, inputs, {}, {.device = device_});
  }
  // One element, of whatever rank, as one of rank 0.
  Value scalar(Value value, const std::string& device) {
    if (builder_.status().is_ok() && builder_.type(value).tensor.dims.rank() == 0) return value;
    return builder_.op("Reshape", {value, builder_.int64s({})}, {}, {.device = device});
  }

  const std::span<const NodeId> siblings_;
  const std::string& device_;
  std::vector<Lane> lanes_;
  std::map<RegionId, std::string> lane_of_region_;
};

}  // namespace

std::string why_not_merged(const Graph& graph, NodeId loop) {
  const LoopView view(graph, loop);
  if (!view.rows().empty()) return "it stacks rows";
  if (!std::ranges::equal(view.forwarded(), view.carried())) return "it forwards other values";
  for (size_t k = 0; k < view.num_carried(); ++k) {
    const ValueType& type = graph.value(view.carried()[k]).type;
    const bool keeps = is_alike(type, graph.value(view.initial()[k]).type) &&
                       is_alike(type, graph.value(view.next()[k]).type);
    if (!keeps) return "a value that it carries has no fixed shape";
  }
  const auto is_one = [&](ValueId value) {
    return value.is_none() || (graph.value(value).type.is_static_tensor() &&
                               graph.value(value).type.tensor.dims.count() == int64_t{1});
  };
  if (!is_one(view.predicate()) || !is_one(view.trip_limit())) {
    return "its predicate or limit may not be one element";
  }
  for (const RegionId region : view.node().regions) {
    for (const NodeId inner : graph.region(region).nodes) {
      if (graph.node(inner).kind != NodeKind::kExec) return "there are loops or branches inside";
      if (has_effects(graph.node(inner))) return "a node inside has effects";
    }
  }
  return "";
}

std::vector<NodeId> find_siblings(const Graph& graph, std::span<const NodeId> candidates) {
  const std::set<NodeId> wanted(candidates.begin(), candidates.end());
  std::set<RegionId> regions;
  for (const NodeId id : wanted) regions.insert(graph.node(id).region);
  std::vector<NodeId> best;
  for (const RegionId region : regions) {
    // A candidate joins the first group of which it needs nothing.
    std::vector<std::vector<NodeId>> groups;
    std::map<NodeId, std::set<size_t>> needs;  // groups, by way of others too
    for (const NodeId id : graph.region(region).nodes) {
      std::set<size_t> needed;
      for_each_source(graph, id, [&](NodeId source) { needed.merge(std::set(needs[source])); });
      if (wanted.contains(id)) {
        size_t group = 0;
        while (needed.contains(group)) ++group;
        if (group == groups.size()) groups.emplace_back();
        groups[group].push_back(id);
        needed.insert(group);
      }
      needs[id] = std::move(needed);
    }
    for (std::vector<NodeId>& group : groups) {
      if (group.size() > std::max<size_t>(best.size(), 1)) best = std::move(group);
    }
  }
  return best;
}

std::string merged_name(const Graph& graph, std::span<const NodeId> siblings) {
  std::string name;
  for (const NodeId id : siblings) name += (name.empty() ? "" : "+") + graph.node(id).name;
  return name;
}

Result<Graph> merge_loops(Graph graph, const OpTable& ops, std::span<const NodeId> siblings,
                          const std::string& device) {
  GraphBuilder builder(ops, graph.name());
  LoopMerger(graph, builder, siblings, device).run();
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace eddy
