#include "graph/compile/plan_drawing.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/schedule/frame_waits.h"
#include "graph/schedule/region_dag.h"
#include "graph/schedule/value_text.h"

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

// `unit`: of ranks by cost.
std::string rank_text(std::span<const uint32_t> unit_ranks, std::span<const double> cost_ranks,
                      const char* unit, uint32_t i) {
  if (cost_ranks.empty()) return std::to_string(unit_ranks[i]);
  return fmt::format("{:g} {}", cost_ranks[i], unit);
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
    drawn.is_ranked_by_costs = !plan.cost_ranks.empty();
    drawn.num_streams = plan.num_streams;

    std::unordered_map<NodeId, uint32_t> rank_of;  // index into Region::nodes, at first
    for (uint32_t i = 0; i < region.nodes.size(); ++i) rank_of[region.nodes[i]] = i;
    std::unordered_map<NodeId, uint32_t> place;
    for (const PlanCommand& command : plan.commands) {
      if (command.kind != PlanCommand::Kind::kLaunch) continue;
      place[command.node] = static_cast<uint32_t>(drawn.nodes.size());
      const uint32_t stream = plan.streams.empty() ? command.stream : plan.streams[command.stream];
      const uint32_t i = rank_of[command.node];
      drawn.nodes.push_back(
          node(command.node, stream, rank_text(plan.ranks, plan.cost_ranks, "ns", i)));
    }
    add_waits(plan, place, drawn);
    add_frame_waits(plan, place, drawn);
    if (plan.open) add_next_waits(plan, place, drawn);
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
    if (!plan_.devices.empty()) drawn.devices = {plan_.devices[plan_.stream_devices[stream]]};
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

  static void add_frame_waits(const RegionPlan& plan,
                              const std::unordered_map<NodeId, uint32_t>& place,
                              DrawnRegion& drawn) {
    const FrameWaits frame = frame_waits(plan);
    for (const auto& wait : frame.entry) drawn.entry_waits.push_back(place.at(wait.node));
    for (const auto& wait : frame.exit) drawn.exit_waits.push_back(place.at(wait.node));
    const size_t num_entries = frame.entry.empty() ? 0 : 1;
    drawn.num_records = plan.num_events + static_cast<uint32_t>(num_entries + frame.exit.size());
  }

  std::string take_text(const RegionPlan& plan, const OpenEnd::Take& take) const {
    std::string text = "stream " + std::to_string(plan.machine_stream(take.stream)) + " takes";
    for (size_t i = 0; i < take.values.size(); ++i) {
      text += (i > 0 ? ", " : " ") + value_text(graph_, take.values[i]);
    }
    return text + " before " + graph_.node(take.before).name;
  }

  void add_next_waits(const RegionPlan& plan, const std::unordered_map<NodeId, uint32_t>& place,
                      DrawnRegion& drawn) const {
    drawn.note = "the next iteration begins beside its tail";
    // By event: the node it is drawn at, and what it stands behind.
    std::unordered_map<uint32_t, std::pair<uint32_t, std::string>> recorded;
    for (const PlanCommand& command : plan.commands) {
      if (command.kind != PlanCommand::Kind::kRecord) continue;
      recorded[command.event] = {place.at(command.node), graph_.node(command.node).name};
    }
    for (const OpenEnd::Take& take : plan.open->takes) {
      const std::string text = take_text(plan, take);
      drawn.note += "; " + text;
      recorded[take.event] = {place.at(take.before), text};
    }
    const auto wait_text = [&](uint32_t event, const std::string& where) {
      return where + " waits for e" + std::to_string(event) + " of " + recorded.at(event).second;
    };
    for (const uint32_t e : plan.open->end_waits) {
      drawn.next_waits.push_back({e, recorded.at(e).first, DrawnNextWait::kTurn,
                                  wait_text(e, "the end") + ", before values move on"});
    }
    for (const OpenEnd::PreviousWait& wait : plan.open->previous_waits) {
      const std::string served = graph_.node(wait.serves).name;
      const std::string where =
          wait.before.is_none() ? "the next iteration" : "the next iteration's " + served;
      std::string text = wait_text(wait.event, where);
      if (wait.before.is_none()) text += ", for its " + served;
      drawn.next_waits.push_back(
          {wait.event, recorded.at(wait.event).first, place.at(wait.serves), std::move(text)});
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

DrawnRegion draw_region(const Graph& graph, const Plan& plan, RegionId region) {
  const NoteFunction no_note;
  return PlanArtist(graph, plan, no_note).region(region);
}

DrawnRegion draw_dag_plan(const DagFile& file, const DagPlan& plan) {
  DrawnRegion drawn;
  drawn.name = "graph";
  drawn.is_ranked_by_costs = !plan.cost_ranks.empty();
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
    node.rank = rank_text(plan.unit_ranks, plan.cost_ranks, "s", id);
    for (size_t s = 0; file.device_names.size() > 1 && s < node.streams.size(); ++s) {
      const uint32_t device = plan.streams.device_of_stream[node.streams[s]];
      node.devices.push_back(file.device_names[device]);
    }
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

std::string device_text(const DrawnNode& node) {
  return fmt::format("{}", fmt::join(node.devices, "+"));
}

DrawnTotals count_drawn(const DrawnRegion& region) {
  DrawnTotals totals{1, region.nodes.size(), region.num_records,
                     region.num_waits() + region.next_waits.size()};
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
