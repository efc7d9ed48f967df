#include "graph/compile/plan_drawing.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/base/check.h"
#include "graph/program/step_nodes.h"
#include "graph/schedule/plan/value_text.h"
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

std::string rank_text(const RegionPlan& plan, uint32_t i) {
  EDDY_DCHECK(plan.cost_ranks.empty() ? i < plan.ranks.size() : i < plan.cost_ranks.size())
      << "node " << i << " has no rank";
  if (plan.cost_ranks.empty()) return std::to_string(plan.ranks[i]);
  return fmt::format("{:g} ns", plan.cost_ranks[i]);
}

class PlanArtist {
 public:
  PlanArtist(const Graph& graph, const Plan& plan, const NoteFunction& note)
      : graph_(graph), plan_(plan), note_(note) {
    EDDY_CHECK(plan.regions.size() == graph.num_regions() &&
               plan.program.blocks.size() == graph.num_regions())
        << plan.regions.size() << " regions are planned, " << graph.num_regions() << " to draw";
  }

  DrawnRegion region(RegionId id) const {
    const Region& region = graph_.region(id);
    const RegionPlan& plan = plan_.regions[id.index()];
    const Program::Block& block = plan_.program.blocks[id.index()];
    DrawnRegion drawn;
    drawn.name = region.owner.is_none() ? graph_.name() : region.name;
    drawn.is_ranked_by_costs = !plan.cost_ranks.empty();
    drawn.num_streams = static_cast<uint32_t>(block.streams.size());

    std::unordered_map<NodeId, uint32_t> rank_of;  // index into Region::nodes, at first
    for (uint32_t i = 0; i < region.nodes.size(); ++i) rank_of[region.nodes[i]] = i;
    std::unordered_map<NodeId, uint32_t> place;
    for (const Program::Step& step : block.steps) {
      if (!is_node(step.op)) continue;
      const NodeId id_of = node_of(plan_.program, step);
      place[id_of] = static_cast<uint32_t>(drawn.nodes.size());
      drawn.nodes.push_back(node(id_of, step.stream, rank_text(plan, rank_of[id_of])));
    }
    add_syncs(id, place, drawn);
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
    EDDY_CHECK(plan_.devices.empty() || (stream < plan_.stream_devices.size() &&
                                         plan_.stream_devices[stream] < plan_.devices.size()))
        << "stream " << stream << " is on no device";
    if (!plan_.devices.empty()) drawn.devices = {plan_.devices[plan_.stream_devices[stream]]};
    drawn.rank = std::move(rank);
    if (node.kind != NodeKind::kExec && note_) drawn.note = note_(id);
    for (const RegionId inner : node.regions) drawn.regions.push_back(region(inner));
    return drawn;
  }

  using Places = std::unordered_map<NodeId, uint32_t>;

  // A step that works on a stream, as records and waits name it.
  struct Work {
    uint32_t place = 0;  // of the node it is drawn at
    std::string name;
  };

  // Behind or before a record or wait; of a retain: of the node right behind it.
  Work work(RegionId id, size_t step, const Places& place) const {
    const std::vector<Program::Step>& steps = plan_.program.blocks[id.index()].steps;
    std::string text;
    if (steps[step].op == Program::Op::kRetain) text = retain_text(id, step);
    const NodeId node = node_of(plan_.program, steps[node_at(id, step)]);
    EDDY_DCHECK(place.contains(node)) << "node " << node.index() << " is not drawn yet";
    return {place.at(node), text.empty() ? graph_.node(node).name : text};
  }
  // The step of that node, or the node's that a retain serves.
  size_t node_at(RegionId id, size_t step) const {
    const std::vector<Program::Step>& steps = plan_.program.blocks[id.index()].steps;
    const uint32_t stream = steps[step].stream;
    while (!is_node(steps[step].op) || steps[step].stream != stream) {
      ++step;
      EDDY_CHECK(step < steps.size()) << "no node follows on stream " << stream;
    }
    return step;
  }

  std::string retain_text(RegionId id, size_t step) const {
    const Program::Step& retain = plan_.program.blocks[id.index()].steps[step];
    std::string text = "stream " + std::to_string(retain.stream) + " takes";
    const char* separator = " ";
    for (const Program::Alias& alias : plan_.program.launches[retain.operand].aliases) {
      text += separator + value_text(graph_, ValueId(alias.from));
      separator = ", ";
    }
    const NodeId served =
        node_of(plan_.program, plan_.program.blocks[id.index()].steps[node_at(id, step)]);
    return text + " before " + graph_.node(served).name;
  }

  void add_syncs(RegionId id, const Places& place, DrawnRegion& drawn) const {
    const Program::Block& block = plan_.program.blocks[id.index()];
    const std::vector<uint32_t> node = find_step_nodes(block);
    const bool overlaps = is_pipelined(plan_.program, block);
    if (overlaps) drawn.note = "the next iteration begins beside its tail";
    std::unordered_map<uint32_t, Work> recorded;  // by event; but the entry's
    for (size_t i = 0; i < block.steps.size(); ++i) {
      if (block.steps[i].op == Program::Op::kRetain) drawn.note += "; " + retain_text(id, i);
      if (block.steps[i].op != Program::Op::kRecord) continue;
      ++drawn.num_records;
      if (node[i] != Program::kNone) {
        const Work recorder = work(id, node[i], place);
        recorded.emplace(block.steps[i].operand, recorder);
        const bool is_its =
            is_node(block.steps[node[i]].op) && block.steps[i].operand < first_frame_event(block);
        if (is_its) drawn.records.emplace_back(block.steps[i].operand, recorder.place);
      }
    }
    const auto wait_text = [&](uint32_t event, const std::string& where) {
      return where + " waits for e" + std::to_string(event) + " of " + recorded.at(event).name;
    };
    std::vector<DrawnNextWait> before_next;
    for (size_t i = 0; i < block.steps.size(); ++i) {
      const auto& [op, stream, event] = block.steps[i];
      if (op == Program::Op::kWait && !recorded.contains(event)) {
        drawn.entry_waits.push_back(work(id, node_at(id, i), place).place);
      } else if (op == Program::Op::kWait && node[i] != Program::kNone) {
        drawn.waits.push_back(
            {event, recorded.at(event).place, work(id, node_at(id, node[i]), place).place});
      } else if (op == Program::Op::kWait && overlaps) {
        drawn.next_waits.push_back({event, recorded.at(event).place, DrawnNextWait::kTurn,
                                    wait_text(event, "the end") + ", before values move on"});
      } else if (op == Program::Op::kWait) {
        drawn.exit_waits.push_back(recorded.at(event).place);
      } else if (op == Program::Op::kWaitPrevious) {
        before_next.push_back(next_wait(id, i, node[i], place, wait_text));
      }
    }
    drawn.next_waits.insert(drawn.next_waits.end(), before_next.begin(), before_next.end());
    for (DrawnNextWait& wait : drawn.next_waits) wait.from = recorded.at(wait.event).place;
  }

  // A wait for the iteration before.
  template <typename WaitText>
  DrawnNextWait next_wait(RegionId id, size_t step, uint32_t next, const Places& place,
                          const WaitText& wait_text) const {
    const uint32_t event = plan_.program.blocks[id.index()].steps[step].operand;
    for (const auto& [held_event, node] : plan_.regions[id.index()].held_up) {
      if (held_event != event) continue;
      const std::string& served = graph_.node(node).name;
      return {event, 0, place.at(node),
              wait_text(event, "the next iteration") + ", for its " + served};
    }
    const Work served = work(id, node_at(id, next), place);
    return {event, 0, served.place, wait_text(event, "the next iteration's " + served.name)};
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
