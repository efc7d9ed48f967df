#include "graph/compile/plan_drawing.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "graph/schedule/region_dag.h"

namespace eddy {
namespace {

const char* kind_name(const Node& node) {
  switch (node.kind) {
    case NodeKind::kWhile:
      return "while";
    case NodeKind::kCaseOf:
      return "case-of";
    case NodeKind::kExec:
      break;
  }
  return node.op->name.c_str();
}

std::string rank_text(std::span<const uint32_t> unit_ranks, std::span<const double> cost_ranks,
                      uint32_t i) {
  return cost_ranks.empty() ? std::to_string(unit_ranks[i]) : fmt::format("{:g}", cost_ranks[i]);
}

class PlanArtist {
 public:
  PlanArtist(const Graph& graph, const Plan& plan, const NoteFunction& note)
      : graph_(graph), plan_(plan), note_(note) {}

  DrawnRegion region(RegionId id) const {
    const Region& region = graph_.region(id);
    const RegionPlan& plan = plan_.regions[id.index()];
    DrawnRegion drawn;
    drawn.name = region.owner.is_none() ? graph_.name() : region.name;
    drawn.num_streams = plan.num_streams;
    drawn.num_records = plan.num_events;

    std::unordered_map<NodeId, uint32_t> rank_of;  // index into Region::nodes, at first
    for (uint32_t i = 0; i < region.nodes.size(); ++i) rank_of[region.nodes[i]] = i;
    std::unordered_map<NodeId, uint32_t> place;
    for (const PlanCommand& command : plan.commands) {
      if (command.kind != PlanCommand::Kind::kLaunch) continue;
      place[command.node] = static_cast<uint32_t>(drawn.nodes.size());
      const uint32_t stream = plan.streams.empty() ? command.stream : plan.streams[command.stream];
      const uint32_t i = rank_of[command.node];
      drawn.nodes.push_back(node(command.node, stream, rank_text(plan.ranks, plan.cost_ranks, i)));
    }
    add_waits(plan, place, drawn);
    if (plan.open) {
      drawn.note = "goes on beside the next iteration, which waits for it at " +
                   std::to_string(plan.open->end_waits.size()) + " places at the end and " +
                   std::to_string(plan.open->previous_waits.size()) + " later";
    }
    for (const Edge& edge : region_dag(graph_, id).edges()) {
      drawn.edges.emplace_back(place.at(region.nodes[edge.from]), place.at(region.nodes[edge.to]));
    }
    return drawn;
  }

 private:
  DrawnNode node(NodeId id, uint32_t stream, std::string rank) const {
    const Node& node = graph_.node(id);
    DrawnNode drawn;
    drawn.name = node.name;
    drawn.kind = kind_name(node);
    drawn.streams = {stream};
    if (!plan_.devices.empty()) drawn.device = plan_.devices[plan_.stream_devices[stream]];
    drawn.rank = std::move(rank);
    if (node.kind != NodeKind::kExec && note_) drawn.note = note_(id);
    for (const RegionId inner : node.regions) drawn.regions.push_back(region(inner));
    return drawn;
  }

  static void add_waits(const RegionPlan& plan, const std::unordered_map<NodeId, uint32_t>& place,
                        DrawnRegion& drawn) {
    std::vector<NodeId> recorder(plan.num_events);
    for (const PlanCommand& command : plan.commands) {
      if (command.kind == PlanCommand::Kind::kRecord) recorder[command.event] = command.node;
      if (command.kind != PlanCommand::Kind::kWait) continue;
      drawn.waits.push_back(
          {command.event, place.at(recorder[command.event]), place.at(command.node)});
    }
  }

  const Graph& graph_;
  const Plan& plan_;
  const NoteFunction& note_;
};

}  // namespace

DrawnRegion draw_plan(const Graph& graph, const Plan& plan, const NoteFunction& note) {
  return PlanArtist(graph, plan, note).region(Graph::kRoot);
}

DrawnRegion draw_dag_plan(const DagFile& file, const DagPlan& plan) {
  DrawnRegion drawn;
  drawn.name = "graph";
  drawn.num_streams = plan.streams.num_streams;
  drawn.num_records = static_cast<uint32_t>(plan.syncs.records.size());
  std::vector<uint32_t> place(file.num_nodes);
  for (const uint32_t id : plan.issue_order) {
    place[id] = static_cast<uint32_t>(drawn.nodes.size());
    DrawnNode& node = drawn.nodes.emplace_back();
    node.name = std::to_string(id);
    node.kind = file.commands.empty() ? "node" : file.command_names[file.commands[id]];
    node.streams = {plan.streams.stream_of_node[id]};
    for (const NodeStream& further : plan.streams.further_streams_of(id)) {
      node.streams.push_back(further.stream);
    }
    node.rank = rank_text(plan.unit_ranks, plan.cost_ranks, id);
  }
  for (const SyncPlan::Wait& wait : plan.syncs.waits) {
    const Edge served = plan.syncs.served_edge(wait);
    drawn.waits.push_back({wait.event, place[served.from], place[served.to]});
  }
  std::stable_sort(drawn.waits.begin(), drawn.waits.end(),
                   [](const DrawnWait& a, const DrawnWait& b) { return a.to < b.to; });
  for (const Edge& edge : file.edges) drawn.edges.emplace_back(place[edge.from], place[edge.to]);
  return drawn;
}

DrawnTotals count_drawn(const DrawnRegion& region) {
  DrawnTotals totals{1, region.nodes.size(), region.num_records, region.waits.size()};
  for (const DrawnNode& node : region.nodes) {
    for (const DrawnRegion& inner : node.regions) {
      const DrawnTotals more = count_drawn(inner);
      totals.regions += more.regions;
      totals.nodes += more.nodes;
      totals.records += more.records;
      totals.waits += more.waits;
    }
  }
  return totals;
}

}  // namespace eddy
