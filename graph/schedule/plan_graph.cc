#include "graph/schedule/plan_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/analysis/rank.h"
#include "graph/analysis/topological_order.h"
#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "graph/proof/program_proof.h"
#include "graph/schedule/boundary_waits.h"
#include "graph/schedule/costs/cost_model.h"
#include "graph/schedule/emit_program.h"
#include "graph/schedule/event_numbers.h"
#include "graph/schedule/loops/carried_first.h"
#include "graph/schedule/loops/pipelined_loops.h"
#include "graph/schedule/memory/node_order.h"
#include "graph/schedule/memory/plan_memory.h"
#include "graph/schedule/plan/value_text.h"
#include "graph/schedule/region_dag.h"
#include "graph/schedule/stream_bits.h"
#include "graph/schedule/streams/command_list.h"
#include "graph/schedule/streams/exchange_tails.h"
#include "graph/schedule/streams/issue_order.h"
#include "graph/schedule/streams/sync_plan.h"

namespace eddy {
namespace {

std::string policy_name(AssignPolicy policy) {
  switch (policy) {
    case AssignPolicy::kRank:
      return "rank";
    case AssignPolicy::kMatching:
      return "matching";
    case AssignPolicy::kSerial:
      return "serial";
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
  EDDY_CHECK(assignment.stream_of_node.size() == costs.size()) << "one cost for each node";
  std::vector<double> busy(assignment.num_streams, 0);
  double total = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    busy[assignment.stream_of_node[i]] += costs[i];
    total += costs[i];
  }
  return busy.empty() ? 0 : total - *std::max_element(busy.begin(), busy.end());
}

// Between devices there are waits in any case.
bool pays(const PlanOptions& options, const Dag& dag, std::span<const uint32_t> order,
          const StreamAssignment& assignment, std::span<const double> costs) {
  const double work_ns = parallel_work_ns(assignment, costs);
  if (work_ns < options.min_parallel_ns) return false;
  if (work_ns < assignment.num_streams * options.min_ns_a_stream) return false;
  if (!options.devices.empty()) return true;
  const size_t num_waits = plan_syncs(dag, assignment, order).waits.size();
  return work_ns >= static_cast<double>(num_waits) * options.min_ns_a_wait;
}

// By NodeId, into `devices`: an exec node's by its name, a control node's by what is inside.
std::vector<uint32_t> node_devices(const Graph& graph, const std::vector<std::string>& devices) {
  std::vector<uint32_t> result(graph.num_nodes(), 0);
  // Inner nodes have larger ids than the control node around them.
  for (auto n = static_cast<uint32_t>(graph.num_nodes()); n-- > 0;) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind == NodeKind::kExec) {
      const auto named = std::find(devices.begin(), devices.end(), node.device);
      if (named != devices.end()) result[n] = static_cast<uint32_t>(named - devices.begin());
      continue;
    }
    for (const RegionId region : node.regions) {
      for (const NodeId inner : graph.region(region).nodes) {
        if (result[n] == 0) result[n] = result[inner.index()];
      }
    }
  }
  return result;
}

// Stream 0 of a region is on `device`: renumbers, or adds an empty stream.
void put_first(StreamAssignment& assignment, uint32_t device) {
  auto& devices = assignment.device_of_stream;
  EDDY_DCHECK(devices.size() == assignment.num_streams) << "one device for each stream";
  const auto found = std::find(devices.begin(), devices.end(), device);
  const auto first = static_cast<uint32_t>(found - devices.begin());
  if (found == devices.end()) {
    devices.insert(devices.begin(), device);
    ++assignment.num_streams;
  } else {
    std::rotate(devices.begin(), found, found + 1);
  }
  for (uint32_t& stream : assignment.stream_of_node) {
    stream = stream == first ? 0 : stream < first ? stream + 1 : stream;
  }
}

// Replaces the list's numbers by NodeIds.
std::vector<Program::Step> with_nodes(const Region& region, std::vector<Program::Step> steps) {
  for (Program::Step& step : steps) {
    if (step.op != Program::Op::kLaunch) continue;
    EDDY_DCHECK(step.operand < region.nodes.size()) << "node " << step.operand << " of a region";
    step.operand = region.nodes[step.operand].index();
  }
  return steps;
}

RegionSchedule plan_region(const Graph& graph, RegionId id, std::span<const double> all_costs,
                           const PlanOptions& options, uint32_t max_streams,
                           std::span<const uint32_t> all_devices, uint32_t own_device,
                           FewestStreams& worst) {
  const Region& region = graph.region(id);
  RegionSchedule plan;
  if (!all_devices.empty()) plan.devices = {own_device};
  if (region.nodes.empty()) return plan;
  const Dag dag = region_dag(graph, id);
  std::vector<double> costs;
  for (NodeId node : region.nodes) costs.push_back(all_costs[node.index()]);
  const std::vector<uint32_t> topological = topological_order(dag);
  plan.ranks = unit_ranks(dag, topological);
  if (options.rank_by_costs) plan.cost_ranks = cost_ranks(dag, topological, costs);
  const std::vector<uint32_t> order = issue_order(plan.ranks, plan.cost_ranks);
  const std::vector<uint32_t> numbers = command_numbers(graph, region);
  StreamOptions stream_options;
  if (options.rank_by_costs) stream_options.costs = costs;
  stream_options.policy = options.policy;
  stream_options.max_streams = max_streams;
  stream_options.commands = numbers;
  std::vector<uint32_t> devices;
  for (NodeId node : region.nodes) {
    if (!all_devices.empty()) devices.push_back(all_devices[node.index()]);
  }
  stream_options.devices = devices;
  StreamAssignment assignment = assign_streams(dag, order, stream_options);
  // A shared call leaves no worker to anything beside it.
  std::vector<double> unshared = costs;
  for (size_t i = 0; i < unshared.size(); ++i) {
    if (!options.splits.empty() && options.splits[region.nodes[i].index()]) unshared[i] = 0;
  }
  if (options.is_auto && !pays(options, dag, order, assignment, unshared)) {
    stream_options.policy = AssignPolicy::kSerial;
    assignment = assign_streams(dag, order, stream_options);
  }
  worst = std::max(worst, assignment.fewest);
  if (!devices.empty()) {
    put_first(assignment, own_device);
    plan.devices = assignment.device_of_stream;
  }
  const bool is_matched = stream_options.policy == AssignPolicy::kMatching;
  if (is_matched && assignment.fewest != FewestStreams::kCapped) {
    exchange_tails(dag, order, own_device, assignment);
  }
  const SyncPlan syncs = plan_syncs(dag, assignment, order);
  EDDY_CHECK(devices.empty() || plan.devices.size() == assignment.num_streams)
      << "one device for each stream";
  plan.num_streams = assignment.num_streams;
  plan.num_events = static_cast<uint32_t>(syncs.records.size());
  plan.steps = with_nodes(region, command_list(order, assignment, syncs));
  // By rank the longest chain is first, from a source to a sink; its streams keep their numbers.
  if (is_matched || !devices.empty()) put_fewest_boundary_waits_first(plan);
  return plan;
}

// Plans region by region from the outside in, and gives each the streams that are free as long as
// it runs.
class GraphPlanner {
 public:
  // `worst`: of all regions' streams.
  GraphPlanner(const Graph& graph, const PlanOptions& options, FewestStreams& worst)
      : worst_(worst),
        graph_(graph),
        options_(options),
        costs_(estimate_costs_ns(graph, options.costs_or_null)),
        order_(graph) {
    EDDY_CHECK(options.splits.empty() || options.splits.size() == graph.num_nodes())
        << options.splits.size() << " marks for " << graph.num_nodes() << " nodes";
    plan_.regions.resize(graph.num_regions());
    if (options.devices.empty()) return;
    devices_ = node_devices(graph, options.devices);
    plan_.devices = options.devices;
    plan_.value_devices = options.value_devices;
    plan_.value_devices.resize(graph.num_values(), 0);
    uint32_t root = 0;
    for (const NodeId node : graph.root().nodes) root = root != 0 ? root : devices_[node.index()];
    plan_.stream_devices = {root};
  }

  Schedule run() {
    plan(Graph::kRoot, 0, {});
    for (const RegionSchedule& region : plan_.regions) {
      for (const uint32_t stream : region.streams) {
        plan_.num_streams = std::max(plan_.num_streams, stream + 1);
      }
    }
    return std::move(plan_);
  }

 private:
  // What a loop or branch in a region uses inside.
  struct Inside {
    NodeId node;
    StreamBits streams;
  };

  // `busy`: streams that others may be using while the region runs; `before`: those of the regions
  // that follow it, which may use them while its tail runs. Returns those of the region and all in
  // it.
  StreamBits plan(RegionId id, uint32_t own_stream, StreamBits busy,
                  const StreamBits& before = {}) {
    RegionSchedule& region = plan_.regions[id.index()];
    EDDY_DCHECK(region.streams.empty()) << "region " << id.index() << " is planned twice";
    region = plan_region(graph_, id, costs_, options_, max_streams(own_stream, busy), devices_,
                         device_of(own_stream), worst_);
    const bool is_body = region.num_streams > 1 && role(graph_, id) == RegionRole::kAfter;
    const bool has_tail = is_body && put_carried_first(graph_, id, region);
    if (has_tail && options_.max_streams == 0) busy.insert(before);
    region.streams = pick_streams(region, own_stream, busy);
    EDDY_CHECK(region.streams.size() == region.num_streams && region.streams[0] == own_stream)
        << "a region begins on its control node's stream";
    StreamBits used;
    for (const uint32_t stream : region.streams) used.insert(stream);
    order_.add(region);
    std::vector<Inside> insides;
    const std::vector<std::vector<NodeId>> lanes = nodes_by_stream(region);
    for (const Program::Step& step : region.steps) {
      if (step.op != Program::Op::kLaunch) continue;
      const std::vector<RegionId>& inner = graph_.node(NodeId(step.operand)).regions;
      if (inner.empty()) continue;
      StreamBits taken = busy;
      add_beside(NodeId(step.operand), region, lanes, insides, taken);
      Inside inside{NodeId(step.operand), {}};
      for (const RegionId each : inner) {
        inside.streams.insert(plan(each, region.streams[step.stream], taken, inside.streams));
      }
      used.insert(inside.streams);
      if (inside.streams.size() > 1) insides.push_back(std::move(inside));
    }
    return used;
  }

  uint32_t device_of(uint32_t stream) const {
    EDDY_DCHECK(devices_.empty() || stream < plan_.stream_devices.size()) << "stream " << stream;
    return devices_.empty() ? 0 : plan_.stream_devices[stream];
  }

  // What the cap leaves, the region's own stream included, of the device with the fewest; 0: no
  // cap.
  uint32_t max_streams(uint32_t own_stream, const StreamBits& busy) const {
    if (options_.max_streams == 0) return 0;
    std::vector<uint32_t> taken(std::max<size_t>(plan_.devices.size(), 1), 0);
    busy.for_each([&](uint32_t stream) {
      if (stream != own_stream) ++taken[device_of(stream)];
    });
    const uint32_t most = *std::max_element(taken.begin(), taken.end());
    return std::max(1u, options_.max_streams - std::min(options_.max_streams, most));
  }

  // The lowest free streams of the machine, each of the device that is wanted.
  std::vector<uint32_t> pick_streams(const RegionSchedule& region, uint32_t own,
                                     const StreamBits& busy) {
    std::vector<uint32_t> streams = {own};
    std::vector<uint32_t> next(std::max<size_t>(plan_.devices.size(), 1), 0);  // by device
    for (uint32_t r = 1; r < region.num_streams; ++r) {
      const uint32_t device = devices_.empty() ? 0 : region.devices[r];
      const auto is_free = [&](uint32_t s) {
        if (!devices_.empty() && s == plan_.stream_devices.size()) {
          plan_.stream_devices.push_back(device);
        }
        return s != own && !busy.contains(s) && device_of(s) == device;
      };
      while (!is_free(next[device])) ++next[device];
      streams.push_back(next[device]++);
    }
    return streams;
  }

  static std::vector<std::vector<NodeId>> nodes_by_stream(const RegionSchedule& region) {
    std::vector<std::vector<NodeId>> lanes(region.num_streams);
    for (const Program::Step& step : region.steps) {
      if (step.op == Program::Op::kLaunch) {
        lanes[step.stream].push_back(NodeId(step.operand));
      }
    }
    return lanes;
  }

  // Streams of the region on which something may run beside `node`, and those inside its
  // neighbours that may.
  void add_beside(NodeId node, const RegionSchedule& region,
                  const std::vector<std::vector<NodeId>>& lanes, const std::vector<Inside>& insides,
                  StreamBits& taken) const {
    for (uint32_t s = 0; s < lanes.size(); ++s) {
      if (s == order_.stream(node)) continue;
      // A lane has the nodes before `node` first, then those beside it, then those after it.
      const auto first_beside =
          std::partition_point(lanes[s].begin(), lanes[s].end(),
                               [&](NodeId other) { return order_.precedes(other, node); });
      const bool is_free = first_beside == lanes[s].end() || order_.precedes(node, *first_beside);
      if (!is_free) taken.insert(region.streams[s]);
    }
    for (const Inside& other : insides) {
      if (order_.precedes(other.node, node) || order_.precedes(node, other.node)) continue;
      taken.insert(other.streams);
    }
  }

  FewestStreams& worst_;
  const Graph& graph_;
  const PlanOptions& options_;
  const std::vector<double> costs_;
  std::vector<uint32_t> devices_;  // by NodeId; empty: there is one
  NodeOrder order_;
  Schedule plan_;
};

}  // namespace

namespace {

// What remains of a schedule beside its program.
Plan make_plan(const Graph& graph, Schedule schedule) {
  Plan plan;
  plan.program = emit_program(graph, schedule);
  for (RegionSchedule& region : schedule.regions) {
    RegionPlan& mine = plan.regions.emplace_back();
    mine.ranks = std::move(region.ranks);
    mine.cost_ranks = std::move(region.cost_ranks);
    mine.held_up = std::move(region.held_up);
  }
  plan.num_streams = schedule.num_streams;
  plan.num_events = schedule.num_events;
  plan.devices = std::move(schedule.devices);
  plan.stream_devices = std::move(schedule.stream_devices);
  plan.value_devices = std::move(schedule.value_devices);
  plan.memory = std::move(schedule.memory);
  return plan;
}

}  // namespace

namespace {

Schedule schedule_graph(const Graph& graph, const PlanOptions& options, FewestStreams& worst) {
  Schedule schedule = GraphPlanner(graph, options, worst).run();
  if (options.lays_out_memory) {
    schedule.memory = plan_memory(graph, schedule, options.memory);
    pipeline_loops(graph, schedule);
  }
  number_events(graph, schedule);
  return schedule;
}

}  // namespace

Schedule schedule_graph(const Graph& graph, const PlanOptions& options) {
  FewestStreams worst = FewestStreams::kExact;
  return schedule_graph(graph, options, worst);
}

Plan plan_graph(const Graph& graph, const PlanOptions& options) {
  FewestStreams worst = FewestStreams::kExact;
  Plan plan = make_plan(graph, schedule_graph(graph, options, worst));
  plan.assignment = policy_name(options.policy);
  if (options.is_auto && plan.num_streams == 1) plan.assignment = "serial";
  if (options.policy == AssignPolicy::kMatching && plan.assignment != "serial") {
    plan.notices.push_back(streams_notice(worst));
  }
  if (options.rank_by_costs && options.costs_or_null == nullptr) {
    plan.notices.push_back("ranks count estimated costs: no measured ones were given");
  }
  return plan;
}

namespace {

// Calls visit(block, step, node) for each launch, loop and case.
template <typename Visit>
void for_each_node(const Program& program, Visit visit) {
  for (uint32_t r = 0; r < program.blocks.size(); ++r) {
    for (const Program::Step& step : program.blocks[r].steps) {
      // What names nothing that is there is for the proof to refuse.
      const bool is_there =
          (step.op == Program::Op::kLaunch && step.operand < program.launches.size()) ||
          (step.op == Program::Op::kLoop && step.operand < program.loops.size()) ||
          (step.op == Program::Op::kCase && step.operand < program.cases.size());
      if (is_there) visit(r, step, node_of(program, step));
    }
  }
}

// Each node of a region is launched there, once.
Status check_launches(const Graph& graph, const Plan& plan) {
  std::vector<uint32_t> num_here(graph.num_nodes(), 0), num_elsewhere(graph.num_nodes(), 0);
  for_each_node(plan.program, [&](uint32_t r, const Program::Step&, NodeId node) {
    ++(graph.node(node).region == RegionId(r) ? num_here : num_elsewhere)[node.index()];
  });
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (num_here[n] == 1 && num_elsewhere[n] == 0) continue;
    return internal_error("the plan is unsafe: " + graph.path(NodeId(n)) +
                          (num_elsewhere[n] > 0 ? " is launched outside its region"
                           : num_here[n] == 0
                               ? " is not launched in its region"
                               : " is launched " + std::to_string(num_here[n]) + " times"));
  }
  return Status::ok();
}

// Each launch stands on a stream of its node's device.
Status check_devices(const Graph& graph, const Plan& plan) {
  if (plan.devices.empty()) return Status::ok();
  const std::vector<uint32_t> devices = node_devices(graph, plan.devices);
  Status status;
  for_each_node(plan.program, [&](uint32_t, const Program::Step& step, NodeId node) {
    const uint32_t wanted = devices[node.index()];
    const bool is_there =
        step.stream < plan.stream_devices.size() && plan.stream_devices[step.stream] == wanted;
    if (is_there || !status.is_ok()) return;
    status = internal_error("the plan is unsafe: " + graph.path(node) + " is for " +
                            plan.devices[wanted] + " but stands on stream " +
                            std::to_string(step.stream) + ", which is another device's");
  });
  return status;
}

// The program's lists are of this graph.
Status check_lists(const Graph& graph, const Program& program) {
  const auto is_node = [&](const auto& each) { return each.node < graph.num_nodes(); };
  const bool is_good =
      program.blocks.size() == graph.num_regions() && program.memory.size() >= graph.num_values() &&
      std::ranges::all_of(program.launches, is_node) &&
      std::ranges::all_of(program.loops, is_node) && std::ranges::all_of(program.cases, is_node);
  if (is_good) return Status::ok();
  return internal_error("the plan is unsafe: its program is of another graph");
}

}  // namespace

Status check_plan(const Graph& graph, const Plan& plan) {
  EDDY_RETURN_IF_ERROR(check_lists(graph, plan.program));
  EDDY_RETURN_IF_ERROR(check_launches(graph, plan));
  return check_devices(graph, plan);
}

Status prove_plan(const Graph& graph, Plan& plan) {
  plan.is_proved = false;
  EDDY_RETURN_IF_ERROR(check_plan(graph, plan));
  const ProgramProof proof = prove_program(plan.program);
  plan.is_proved = proof.is_safe();
  if (plan.is_proved) return Status::ok();
  const auto node_name = [&](uint32_t node) { return graph.path(NodeId(node)); };
  const auto value_name = [&](uint32_t name) {
    return "'" + value_text(graph, value_of_name(graph, plan.program, name)) + "'";
  };
  return internal_error("the plan is unsafe: " +
                        proof.violations[0].to_string(node_name, value_name));
}

}  // namespace eddy
