#include "graph/compile/merge_loops.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

bool is_fixed(const ValueType& type) { return type.is_tensor() && type.tensor.is_static(); }

bool is_alike(const ValueType& a, const ValueType& b) {
  return is_fixed(a) && is_fixed(b) && a.tensor.element == b.tensor.element &&
         a.tensor.dims == b.tensor.dims;
}

// Calls visit(producer) for each node of the same region whose results the node reads, itself or
// in its regions.
template <typename Visit>
void for_each_source(const Graph& graph, NodeId id, const Visit& visit) {
  const Node& node = graph.node(id);
  const auto read = [&](ValueId value) {
    if (value.is_none()) return;
    const ValueInfo& info = graph.value(value);
    if (info.origin == ValueOrigin::kNodeOutput && info.region == node.region) visit(info.producer);
  };
  for (const ValueId input : node.inputs) read(input);
  for (const RegionId region : node.regions) {
    for (const ValueId capture : graph.region(region).captures) read(capture);
  }
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

bool reads_iteration(const Graph& graph, RegionId before) {
  const ValueId iteration = graph.region(before).parameters[0];
  for (const NodeId id : graph.region(before).nodes) {
    if (std::ranges::count(graph.node(id).inputs, iteration) > 0) return true;
  }
  return false;
}

class LoopMerger : public GraphCopier {
 public:
  LoopMerger(const Graph& source, GraphBuilder& builder, std::span<const NodeId> siblings,
             const std::string& device)
      : GraphCopier(source, builder), siblings_(siblings), device_(device) {
    for (const NodeId id : siblings) {
      const Node& node = source.node(id);
      lanes_.push_back({.node = node,
                        .before = source.region(node.regions[0]),
                        .after = source.region(node.regions[1]),
                        .carries_going = reads_iteration(source, node.regions[0])});
      for (const RegionId region : node.regions) lane_of_region_[region] = node.name + "/";
    }
  }

 protected:
  // The merged loop stands where its last one did, behind it what needs any of them.
  std::vector<NodeId> order(RegionId region) override {
    std::vector<NodeId> nodes = GraphCopier::order(region);
    if (region != source_.node(siblings_[0]).region) return nodes;
    const std::set<NodeId> needs = find_dependents(source_, region, siblings_);
    const auto behind = std::ranges::find(nodes, siblings_.back()) + 1;
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
    const Node& node;
    const Region& before;
    const Region& after;
    // Whether it goes on is carried: its `before` could say yes again in a later iteration.
    bool carries_going = false;
    size_t first = 0;  // of its carried values

    size_t num_carried() const { return before.parameters.size() - 1; }
  };

  void merged() {
    WhileOptions options{.name = merged_name(source_, siblings_)};
    for (Lane& lane : lanes_) {
      lane.first = options.initial.size();
      for (size_t k = 0; k < lane.num_carried(); ++k) {
        options.initial.push_back(
            handed_on(lane.node.inputs[k + 1], lane.before.parameters[k + 1]));
        options.carried_types.push_back(source_.value(lane.before.parameters[k + 1]).type);
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
      define_all(lane.node.outputs, ValueSpan(made).subspan(lane.first, lane.num_carried()));
    }
  }

  // That of the loop that may go on longest; none, where one has none.
  Value limit() {
    std::vector<Value> limits;
    for (const Lane& lane : lanes_) {
      if (lane.node.inputs[0].is_none()) return {};
      limits.push_back(scalar(awaited_by_host(lane.node.inputs[0]), ""));
    }
    return builder_.op("Max", limits);
  }

  WhileTest before(Value iteration, ValueSpan carried) {
    WhileTest test{{}, {carried.begin(), carried.end()}};
    for (const Lane& lane : lanes_) {
      define(lane.before.parameters[0], iteration);
      define_all(std::span(lane.before.parameters).subspan(1), carried.subspan(lane.first));
      nodes(lane.node.regions[0]);
      Value goes_on = scalar(value(lane.before.results[0]), device_);
      if (!lane.node.inputs[0].is_none()) {
        const Value limit = scalar(value(lane.node.inputs[0]), device_);
        goes_on = mask("And", {goes_on, mask("Less", {iteration, limit})});
      }
      if (lane.carries_going) {
        goes_on = mask("And", {goes_on, carried[lane.first + lane.num_carried()]});
      }
      test.forwarded.push_back(goes_on);
      test.predicate = test.predicate.is_none() ? goes_on : mask("Or", {test.predicate, goes_on});
    }
    return test;
  }

  std::vector<Value> after(Value iteration, ValueSpan forwarded) {
    std::vector<Value> next;
    const ValueSpan going = forwarded.last(lanes_.size());
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const Lane& lane = lanes_[i];
      define(lane.after.parameters[0], iteration);
      define_all(std::span(lane.after.parameters).subspan(1), forwarded.subspan(lane.first));
      nodes(lane.node.regions[1]);
      for (size_t k = 0; k < lane.num_carried(); ++k) {
        const Value made = handed_on(lane.after.results[k], lane.before.parameters[k + 1]);
        const Value last = forwarded[lane.first + k];
        const bool stays = made.id == last.id;
        next.push_back(stays ? last : mask("Where", {going[i], made, last}));
      }
      if (lane.carries_going) next.push_back(going[i]);
    }
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
  const Node& node = graph.node(loop);
  const Region& before = graph.region(node.regions[0]);
  const Region& after = graph.region(node.regions[1]);
  if (node.num_scan_outputs > 0) return "it stacks rows";
  if (before.results.size() != before.parameters.size()) return "it forwards other values";
  for (size_t k = 1; k < before.parameters.size(); ++k) {
    if (before.results[k] != before.parameters[k]) return "it forwards other values";
    const ValueType& type = graph.value(before.parameters[k]).type;
    const bool keeps = is_alike(type, graph.value(node.inputs[k]).type) &&
                       is_alike(type, graph.value(after.results[k - 1]).type);
    if (!keeps) return "a value that it carries has no fixed shape";
  }
  const auto is_one = [&](ValueId value) {
    return value.is_none() || (is_fixed(graph.value(value).type) &&
                               graph.value(value).type.tensor.dims.count() == int64_t{1});
  };
  if (!is_one(before.results[0]) || !is_one(node.inputs[0])) {
    return "its predicate or limit may not be one element";
  }
  for (const RegionId region : node.regions) {
    for (const NodeId inner : graph.region(region).nodes) {
      if (graph.node(inner).kind != NodeKind::kExec) return "there are loops or branches inside";
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
