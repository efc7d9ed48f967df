#include "tools/command/dag/dag_drawing.h"

#include <algorithm>

#include <fmt/format.h>

#include "graph/base/check.h"

namespace eddy {

DrawnRegion draw_dag_plan(const DagFile& file, const DagPlan& plan) {
  DrawnRegion drawn;
  drawn.name = "graph";
  drawn.is_ranked_by_costs = !plan.cost_ranks.empty();
  drawn.num_streams = plan.streams.num_streams;
  drawn.num_records = static_cast<uint32_t>(plan.syncs.records.size());
  EDDY_CHECK(plan.issue_order.size() == file.num_nodes &&
             plan.streams.stream_of_node.size() == file.num_nodes)
      << "the plan is of another graph";
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
    node.rank = plan.cost_ranks.empty() ? std::to_string(plan.unit_ranks[id])
                                        : fmt::format("{:g} s", plan.cost_ranks[id]);
    for (size_t s = 0; file.device_names.size() > 1 && s < node.streams.size(); ++s) {
      const uint32_t device = plan.streams.device_of_stream[node.streams[s]];
      node.devices.push_back(file.device_names[device]);
    }
  }
  for (const SyncPlan::Wait& wait : plan.syncs.waits) {
    EDDY_CHECK(wait.event < plan.syncs.records.size()) << "event " << wait.event;
    const Edge served = plan.syncs.served_edge(wait);
    drawn.waits.push_back({wait.event, place[served.from], place[served.to]});
  }
  std::stable_sort(drawn.waits.begin(), drawn.waits.end(),
                   [](const DrawnWait& a, const DrawnWait& b) { return a.to < b.to; });
  for (const Edge& edge : file.edges) drawn.edges.emplace_back(place[edge.from], place[edge.to]);
  return drawn;
}

}  // namespace eddy
