#include "graph/schedule/plan_graph.h"

#include <algorithm>
#include <map>

#include "graph/analysis/rank.h"
#include "graph/analysis/topological_order.h"
#include "graph/schedule/command_list.h"
#include "graph/schedule/cost_model.h"
#include "graph/schedule/happens_before.h"
#include "graph/schedule/issue_order.h"
#include "graph/schedule/plan_memory.h"
#include "graph/schedule/region_dag.h"
#include "graph/schedule/sync_plan.h"

namespace eddy {
namespace {

std::string policy_name(AssignPolicy policy) {
  switch (policy) {
    case AssignPolicy::kRank: return "rank";
    case AssignPolicy::kMatching: return "matching";
    case AssignPolicy::kSerial: return "serial";
  }
  return "?";
}

// One number for each distinct operator.
std::vector<uint32_t> command_numbers(const Graph& graph, const Region& region) {
  std::map<std::string, uint32_t> known;
  std::vector<uint32_t> numbers;
  for (NodeId id : region.nodes) {
    const Node& node = graph.node(id);
    const std::string name = node.kind == NodeKind::kExec ? node.op->name : "control";
    numbers.push_back(known.emplace(name, known.size()).first->second);
  }
  return numbers;
}

// Work that would leave the busiest stream.
double parallel_work_ns(const StreamAssignment& assignment, std::span<const double> costs) {
  std::vector<double> busy(assignment.num_streams, 0);
  double total = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    busy[assignment.stream_of_node[i]] += costs[i];
    total += costs[i];
  }
  return busy.empty() ? 0 : total - *std::max_element(busy.begin(), busy.end());
}

RegionPlan plan_region(const Graph& graph, RegionId id, std::span<const double> all_costs,
                       const PlanOptions& options) {
  const Region& region = graph.region(id);
  RegionPlan plan;
  if (region.nodes.empty()) return plan;
  const Dag dag = region_dag(graph, id);
  plan.ranks = unit_ranks(dag, topological_order(dag));
  const std::vector<uint32_t> order = issue_order(plan.ranks);
  const std::vector<uint32_t> numbers = command_numbers(graph, region);
  std::vector<double> costs;
  for (NodeId node : region.nodes) costs.push_back(all_costs[node.index()]);
  StreamOptions stream_options;
  stream_options.policy = options.policy;
  stream_options.max_streams = options.max_streams;
  stream_options.commands = numbers;
  StreamAssignment assignment = assign_streams(dag, order, stream_options);
  if (options.is_auto && parallel_work_ns(assignment, costs) < options.min_parallel_ns) {
    stream_options.policy = AssignPolicy::kSerial;
    assignment = assign_streams(dag, order, stream_options);
  }
  const SyncPlan syncs = plan_syncs(dag, assignment, order);
  plan.num_streams = assignment.num_streams;
  plan.num_events = static_cast<uint32_t>(syncs.records.size());
  NodeId latest;
  for (const Command& command : command_list(order, assignment, syncs)) {
    PlanCommand mine;
    mine.stream = command.stream;
    switch (command.kind) {
      case Command::Kind::kLaunch:
        mine.kind = PlanCommand::Kind::kLaunch;
        mine.node = latest = region.nodes[command.id];
        break;
      case Command::Kind::kRecord:
        mine.kind = PlanCommand::Kind::kRecord;
        mine.event = command.id;
        mine.node = latest;
        break;
      case Command::Kind::kWait:
        mine.kind = PlanCommand::Kind::kWait;
        mine.event = command.id;
        break;
    }
    plan.commands.push_back(mine);
  }
  // A wait stands before the node it serves.
  NodeId next;
  for (size_t i = plan.commands.size(); i-- > 0;) {
    PlanCommand& command = plan.commands[i];
    if (command.kind == PlanCommand::Kind::kLaunch) next = command.node;
    if (command.kind == PlanCommand::Kind::kWait) command.node = next;
  }
  return plan;
}

Status prove_region(const Graph& graph, RegionId id, const RegionPlan& plan) {
  const Region& region = graph.region(id);
  std::map<NodeId, uint32_t> position;
  for (uint32_t i = 0; i < region.nodes.size(); ++i) position[region.nodes[i]] = i;
  std::vector<Command> commands;
  for (const PlanCommand& command : plan.commands) {
    switch (command.kind) {
      case PlanCommand::Kind::kLaunch:
        commands.push_back({Command::Kind::kLaunch, command.stream, position.at(command.node)});
        break;
      case PlanCommand::Kind::kRecord:
        commands.push_back({Command::Kind::kRecord, command.stream, command.event});
        break;
      case PlanCommand::Kind::kWait:
        commands.push_back({Command::Kind::kWait, command.stream, command.event});
        break;
    }
  }
  std::vector<RequiredOrder> required;
  for (const Edge& edge : region_dag(graph, id).edges()) required.push_back({edge.from, edge.to});
  const uint32_t num_nodes = static_cast<uint32_t>(region.nodes.size());
  const Proof proof = prove_order(num_nodes, commands, required);
  if (proof.is_safe()) return Status::ok();
  return internal_error("the plan of region " + std::to_string(id.index()) + " is unsafe: " +
                        proof.violations[0].to_string());
}

}  // namespace

Plan plan_graph(const Graph& graph, const PlanOptions& options) {
  const std::vector<double> costs = estimate_costs_ns(graph);
  Plan plan;
  bool has_streams = false;
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    plan.regions.push_back(plan_region(graph, RegionId(r), costs, options));
    has_streams |= plan.regions.back().num_streams > 1;
  }
  plan.assignment = policy_name(options.policy);
  if (options.is_auto && !has_streams) plan.assignment = "serial";
  plan.memory = plan_memory(graph, plan);
  return plan;
}

Status prove_plan(const Graph& graph, Plan& plan) {
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    EDDY_RETURN_IF_ERROR(prove_region(graph, RegionId(r), plan.regions[r]));
  }
  plan.is_proved = true;
  return Status::ok();
}

}  // namespace eddy
