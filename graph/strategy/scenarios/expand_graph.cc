#include "graph/strategy/scenarios/expand_graph.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "graph/ir/region_tree.h"
#include "graph/strategy/operators/memory_use.h"
#include "graph/strategy/scenarios/graph_reads.h"
#include "graph/strategy/scenarios/region_transfers.h"
#include "graph/strategy/tasks/build_task_graph.h"

namespace eddy {
namespace {

using Kind = ScenarioEntry::Kind;

// A region whose operators, loops and cases are entries.
struct ExpandedRegion {
  std::vector<std::vector<uint32_t>> parts;  // by operator: entries
  std::vector<std::vector<uint32_t>> tiles;  // by operator: entries that make its tiles
  uint32_t first_control = 0;                // entry
};

class GraphExpansion {
 public:
  GraphExpansion(const Graph& graph, const GraphCosts& costs, const Topology& topology)
      : graph_(graph),
        costs_(costs),
        topology_(topology),
        reads_(graph, costs),
        expanded_(graph.num_regions()),
        transfers_(topology) {
    EDDY_CHECK(costs.regions.size() == graph.num_regions() &&
               costs.numbers.size() == graph.num_nodes())
        << "the costs are of another graph";
  }

  Status expand(RegionId id, ScenarioRegion& region);

 private:
  const RegionCosts& costs(RegionId id) const { return costs_.regions[id.index()]; }
  uint32_t number(NodeId node) const { return costs_.numbers[node.index()]; }
  bool is_operator(NodeId node) const { return graph_.node(node).kind == NodeKind::kExec; }
  uint32_t entry_of(NodeId control) const {
    return expanded_[graph_.node(control).region.index()].first_control + number(control);
  }
  RegionId result_region(const Node& loop) const {
    return loop.regions[costs(loop.regions[1]).is_empty() ? 0 : 1];
  }

  Status add_operators(RegionId id, ScenarioRegion& region);
  Status add_control(NodeId id, ScenarioRegion& region);
  void add_devices(const ScenarioEntry& entry, std::set<uint32_t>& devices) const;
  void wait_for(ValueId source, RegionId id, ScenarioEntry& entry) const;
  void add_waits(RegionId id, ScenarioRegion& region) const;
  Status send(const RegionSend& send, RegionId id, ScenarioRegion& region);
  OuterRead outer_read(const RegionSend& send, RegionId id) const;
  void add_starts(NodeId control, std::set<uint32_t>& devices) const;

  template <typename Visit>
  void for_each_result(RegionId id, const Visit& visit) const;
  void add_results(NodeId id, ScenarioRegion& region, std::vector<TransferSource>& to) const;
  void add_last_results(NodeId id, std::optional<uint32_t> loop_or_none, ScenarioRegion& region,
                        std::vector<TransferSource>& to) const;

  const Graph& graph_;
  const GraphCosts& costs_;
  const Topology& topology_;
  const GraphReads reads_;
  std::vector<ExpandedRegion> expanded_;  // by RegionId
  RegionTransfers transfers_;
};

void set_at(std::vector<uint32_t>& list, uint32_t at, uint32_t value) {
  if (at >= list.size()) list.resize(at + size_t{1});
  list[at] = value;
}

// Entries stand in the order of ranks, which is the order in which ties are settled.
Status GraphExpansion::add_operators(RegionId id, ScenarioRegion& region) {
  const OperatorGraph& graph = costs(id).operators;
  ExpandedRegion& made = expanded_[id.index()];
  made.parts.resize(graph.operators.size());
  made.tiles.resize(graph.operators.size());
  if (graph.operators.empty()) return Status::ok();
  TaskGraph<double> tasks;
  std::vector<TaskLabel> labels;
  EDDY_RETURN_IF_ERROR(TaskGraphBuilder(graph, topology_).build(costs(id).strategy, tasks, labels));
  tasks.make_predecessors();
  EDDY_CHECK(labels.size() == tasks.num_slots()) << labels.size() << " labels";
  std::vector<uint32_t> order(tasks.num_slots());
  for (uint32_t slot = 0; slot < order.size(); ++slot) order[slot] = slot;
  std::ranges::sort(order, {}, [&](uint32_t slot) { return tasks.task(slot).rank; });
  std::vector<uint32_t> position(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  for (const uint32_t slot : order) {
    const TaskLabel& label = labels[slot];
    ScenarioEntry& entry = region.entries.emplace_back();
    entry.name = task_name(label, graph, topology_);
    entry.exe_time = tasks.task(slot).exe_time;
    entry.device = tasks.task(slot).device;
    for (const uint32_t from : tasks.predecessors(slot)) entry.deps.push_back(position[from]);
    if (label.kind == TaskKind::kPart) set_at(made.parts[label.op], label.part, position[slot]);
    if (label.kind == TaskKind::kSum) set_at(made.tiles[label.op], label.part, position[slot]);
  }
  for (size_t op = 0; op < made.tiles.size(); ++op) {
    if (made.tiles[op].empty()) made.tiles[op] = made.parts[op];
  }
  return Status::ok();
}

// Of what stands in the region: of an operator all parts, and the sums of cut reductions.
void GraphExpansion::wait_for(ValueId source, RegionId id, ScenarioEntry& entry) const {
  const ValueInfo& info = graph_.value(source);
  if (info.region != id || info.producer.is_none()) return;
  if (!is_operator(info.producer)) return entry.deps.push_back(entry_of(info.producer));
  const ExpandedRegion& made = expanded_[id.index()];
  EDDY_CHECK(number(info.producer) < made.parts.size() && made.parts.size() == made.tiles.size())
      << "operator " << number(info.producer) << " of " << made.parts.size();
  const std::vector<uint32_t>& parts = made.parts[number(info.producer)];
  const std::vector<uint32_t>& tiles = made.tiles[number(info.producer)];
  entry.deps.insert(entry.deps.end(), parts.begin(), parts.end());
  if (tiles != parts) entry.deps.insert(entry.deps.end(), tiles.begin(), tiles.end());
}

void GraphExpansion::add_waits(RegionId id, ScenarioRegion& region) const {
  for (const OuterInput& input : costs(id).outer_inputs) {
    for (const uint32_t part : expanded_[id.index()].parts[input.op]) {
      wait_for(input.source, id, region.entries[part]);
    }
  }
  for (const NodeId control : costs(id).controls) {
    for (const ValueId source : reads_.outside(control)) {
      wait_for(source, id, region.entries[entry_of(control)]);
    }
  }
}

Status GraphExpansion::add_control(NodeId id, ScenarioRegion& region) {
  const Node& node = graph_.node(id);
  ScenarioEntry entry;
  entry.name = costs_.controls.at(id).name;
  entry.kind = node.kind == NodeKind::kWhile ? Kind::kLoop : Kind::kCase;
  entry.decision = costs_.controls.at(id).decision;
  entry.regions.resize(num_branches(node));
  for (size_t r = 0; r < node.regions.size(); ++r) {
    EDDY_RETURN_IF_ERROR(expand(node.regions[r], entry.regions[r]));
  }
  if (entry.decision.device == kAnyDevice) {
    std::set<uint32_t> devices;
    add_devices(entry, devices);
    entry.decision.device = devices.size() == 1 ? *devices.begin() : topology_.devices()[0];
  }
  EDDY_CHECK(entry_of(id) < region.entries.size()) << entry.name << " has no place";
  region.entries[entry_of(id)] = std::move(entry);
  return Status::ok();
}

// Those of operators and decisions in the entry's regions, at any depth.
void GraphExpansion::add_devices(const ScenarioEntry& entry, std::set<uint32_t>& devices) const {
  for (const ScenarioRegion& region : entry.regions) {
    for (const ScenarioEntry& inner : region.entries) {
      if (inner.kind == Kind::kFollow) continue;
      const uint32_t own = inner.kind == Kind::kTask ? inner.device : inner.decision.device;
      if (own < topology_.num_nodes()) devices.insert(own);
      add_devices(inner, devices);
    }
  }
}

// The devices of operators that wait for nothing.
void GraphExpansion::add_starts(NodeId control, std::set<uint32_t>& devices) const {
  for (const RegionId id : graph_.node(control).regions) {
    const RegionCosts& inner = costs(id);
    std::vector<bool> waits(inner.nodes.size());
    for (const OuterInput& input : inner.outer_inputs) waits[input.op] = true;
    for (size_t op = 0; op < waits.size(); ++op) {
      if (waits[op] || !inner.operators.operators[op].inputs.empty()) continue;
      devices.insert(inner.strategy[op].devices.begin(), inner.strategy[op].devices.end());
    }
    for (const NodeId node : inner.controls) {
      if (costs_.controls.at(node).inputs.empty()) add_starts(node, devices);
    }
  }
}

// A loop or case reads the whole on each device where operators in it wait for nothing.
OuterRead GraphExpansion::outer_read(const RegionSend& send, RegionId id) const {
  OuterRead read;
  const RegionId of_reader = graph_.node(send.reader).region;
  if (const OuterInput* const input = send.input_or_null) {
    read.shape = input->shape;
    read.op = costs(of_reader).operators.operators[input->op];
    read.op.inputs = {{.producer = 0, .dims = input->dims}};
    read.config = costs(of_reader).strategy[input->op];
  } else {
    std::set<uint32_t> devices;
    add_starts(send.reader, devices);
    const auto count = static_cast<int64_t>(devices.size());
    read.op.name = costs_.name(graph_, send.reader);
    read.op.shape = {count};
    read.op.inputs.resize(1);
    read.config = {.degree = {count}, .reduce = 1, .devices = {devices.begin(), devices.end()}};
  }
  if (send.is_carried) return read;  // a decision is between
  if (of_reader != id) {
    read.targets = {entry_of(RegionTree(graph_).container(of_reader, id))};
  } else if (is_operator(send.reader)) {
    read.targets = expanded_[id.index()].parts[number(send.reader)];
  } else {
    read.targets = {entry_of(send.reader)};
  }
  return read;
}

Status GraphExpansion::send(const RegionSend& send, RegionId id, ScenarioRegion& region) {
  const OuterRead read = outer_read(send, id);
  if (read.config.devices.empty()) return Status::ok();
  const ValueInfo& source = graph_.value(send.source);
  const auto first = static_cast<uint32_t>(region.entries.size());
  std::vector<TransferSource> sources;
  if (source.region == id) {
    add_results(source.producer, region, sources);
  } else {
    add_last_results(source.producer, std::nullopt, region, sources);
  }
  // Follows, each of which all of the reader's parts wait for.
  const auto last = static_cast<uint32_t>(region.entries.size());
  for (uint32_t follow = first; follow < last; ++follow) {
    for (const uint32_t target : read.targets) {
      EDDY_CHECK(target < first) << "entry " << target << " waits for one that it comes after";
      region.entries[target].deps.push_back(follow);
    }
  }
  return transfers_.send(sources, costs_.name(graph_, source.producer), read, region);
}

// What nothing in the region reads.
template <typename Visit>
void GraphExpansion::for_each_result(RegionId id, const Visit& visit) const {
  for (const auto* const nodes : {&costs(id).nodes, &costs(id).controls}) {
    for (const NodeId node : *nodes) {
      if (!reads_.is_read(node)) visit(node);
    }
  }
}

// Of a node of the region, each time it runs.
void GraphExpansion::add_results(NodeId id, ScenarioRegion& region,
                                 std::vector<TransferSource>& to) const {
  const Node& node = graph_.node(id);
  if (node.kind == NodeKind::kExec) {
    const ExpandedRegion& made = expanded_[node.region.index()];
    to.push_back({&costs(node.region), number(id), made.tiles[number(id)], &region});
  } else if (node.kind == NodeKind::kWhile) {
    add_last_results(id, entry_of(id), region, to);
  } else {
    for (size_t b = 0; b < node.regions.size(); ++b) {
      ScenarioRegion& branch = region.entries[entry_of(id)].regions[b];
      for_each_result(node.regions[b], [&](NodeId inner) { add_results(inner, branch, to); });
    }
  }
}

// Of what a loop's last turn left, after the loop; without one, of what ended before the region
// began. What a branch made is sent where that was taken.
void GraphExpansion::add_last_results(NodeId id, std::optional<uint32_t> loop_or_none,
                                      ScenarioRegion& region,
                                      std::vector<TransferSource>& to) const {
  const Node& node = graph_.node(id);
  if (node.kind == NodeKind::kExec) {
    std::vector<uint32_t> deps;
    const size_t num_tiles = expanded_[node.region.index()].tiles[number(id)].size();
    if (loop_or_none) deps.assign(num_tiles, *loop_or_none);
    to.push_back({&costs(node.region), number(id), std::move(deps), &region});
    return;
  }
  if (node.kind == NodeKind::kWhile) {
    return for_each_result(result_region(node), [&](NodeId inner) {
      add_last_results(inner, loop_or_none, region, to);
    });
  }
  ScenarioEntry follow;
  follow.follows = costs_.controls.at(id).name;
  follow.name = "after " + follow.follows;
  follow.kind = Kind::kFollow;
  if (loop_or_none) follow.deps = {*loop_or_none};
  follow.regions.resize(num_branches(node));
  for (size_t b = 0; b < node.regions.size(); ++b) {
    for_each_result(node.regions[b], [&](NodeId inner) {
      add_last_results(inner, std::nullopt, follow.regions[b], to);
    });
  }
  region.entries.push_back(std::move(follow));
}

// Loops and cases in an order in which each follows those it reads; entries stand in the table's.
Status GraphExpansion::expand(RegionId id, ScenarioRegion& region) {
  EDDY_RETURN_IF_ERROR(add_operators(id, region));
  expanded_[id.index()].first_control = static_cast<uint32_t>(region.entries.size());
  region.entries.resize(region.entries.size() + costs(id).controls.size());
  for (const NodeId node : graph_.region(id).nodes) {
    if (!is_operator(node)) EDDY_RETURN_IF_ERROR(add_control(node, region));
  }
  add_waits(id, region);
  for (const RegionSend& one : reads_.sends(id)) EDDY_RETURN_IF_ERROR(send(one, id, region));
  return Status::ok();
}

using Bytes = std::vector<int64_t>;  // by device

// Of the operators of a region and of those in it that are alive together.
Bytes output_bytes(const Graph& graph, const GraphCosts& costs, RegionId id, size_t num_devices) {
  const RegionCosts& region = costs.regions[id.index()];
  Bytes total(num_devices, 0);
  add_output_bytes(region.operators, region.strategy, total);
  for (const NodeId control : region.controls) {
    const Node& node = graph.node(control);
    Bytes most(num_devices, 0);
    for (const RegionId inner : node.regions) {
      const Bytes own = output_bytes(graph, costs, inner, num_devices);
      for (size_t d = 0; d < num_devices; ++d) {
        if (node.kind == NodeKind::kWhile) {
          add_bytes(most[d], own[d]);
        } else {
          most[d] = std::max(most[d], own[d]);
        }
      }
    }
    for (size_t d = 0; d < num_devices; ++d) add_bytes(total[d], most[d]);
  }
  return total;
}

}  // namespace

Result<ScenarioRegion> expand_graph(const Graph& graph, const GraphCosts& costs,
                                    const Topology& topology) {
  Bytes bytes = output_bytes(graph, costs, Graph::kRoot, topology.num_nodes());
  for (const RegionCosts& region : costs.regions) {
    add_weight_bytes(region.operators, region.strategy, bytes);
  }
  EDDY_RETURN_IF_ERROR(check_capacity(bytes, topology));
  ScenarioRegion root;
  EDDY_RETURN_IF_ERROR(GraphExpansion(graph, costs, topology).expand(Graph::kRoot, root));
  return root;
}

}  // namespace eddy
