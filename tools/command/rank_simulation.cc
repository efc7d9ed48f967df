#include "tools/command/rank_simulation.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/compile/node_work.h"
#include "graph/compile/predict_plan.h"
#include "graph/io/file_bytes.h"
#include "graph/proof/rank_proof.h"
#include "graph/simulate/full_simulation.h"
#include "graph/simulate/rank_tasks.h"
#include "graph/simulate/timeline_svg.h"
#include "tools/command/counted.h"
#include "tools/command/model.h"
#include "tools/command/rank_plan.h"
#include "tools/command/text_file.h"

namespace eddy {
namespace {

using What = RankTasks::What;

constexpr uint64_t kMaxLinkBytes = 1 << 20;

// What a rank runs, and its names.
struct SimulatedRank {
  PlannedRank planned;
  FluidCosts costs;
  std::vector<std::optional<RankOperation>> operations;  // by launch

  std::string launch_name(uint32_t launch) const {
    return planned.graph.path(NodeId(planned.plan.program.launches[launch].node));
  }
  std::string control_name(uint32_t id) const {
    const Program& program = planned.plan.program;
    const bool is_loop = id < program.loops.size();
    const uint32_t node =
        is_loop ? program.loops[id].node : program.cases[id - program.loops.size()].node;
    return planned.graph.path(NodeId(node));
  }
};

// Dimensions that are open count as 1.
double bytes_of(const Graph& graph, ValueId value) {
  if (value.is_none()) return 0;
  const TensorType& type = graph.value(value).type.tensor;
  auto bytes = static_cast<double>(element_size_bytes(type.element));
  for (int d = 0; type.is_ranked && d < type.dims.rank(); ++d) {
    bytes *= static_cast<double>(type.dims[d] < 0 ? 1 : type.dims[d]);
  }
  return bytes;
}

RankOperation operation_of(const Graph& graph, const Communication& communication) {
  RankOperation operation{.lane = {},
                          .ranks = communication.channel.group,
                          .kind = communication.kind,
                          .bytes = bytes_of(graph, communication.moved)};
  operation.lane = fmt::format("channel {} of ranks {}", communication.channel.number,
                               fmt::join(communication.channel.group, ", "));
  if (communication.from == RankSkeleton::kNone) return operation;
  operation.lane += fmt::format(" from {} to {}", communication.from, communication.to);
  operation.kind = "Send";
  operation.ranks = {std::min(communication.from, communication.to),
                     std::max(communication.from, communication.to)};
  return operation;
}

std::vector<std::optional<RankOperation>> operations_of(const PlannedRank& planned) {
  const RankRules rules = standard_rank_rules(planned.world);
  std::vector<std::optional<RankOperation>> operations;
  for (const Program::Launch& launch : planned.plan.program.launches) {
    auto& operation = operations.emplace_back();
    const Node& node = planned.graph.node(NodeId(launch.node));
    if (node.kind != NodeKind::kExec) continue;
    const auto communication = rules.communication(node);
    if (communication) operation = operation_of(planned.graph, *communication);
  }
  return operations;
}

struct RankTimes {
  double end_ns = 0;
  double computes_ns = 0;
  double waits_ns = 0;      // for other ranks
  double transfers_ns = 0;  // for operations that all have come to
};

// All times of operations of one name.
struct NamedOperation {
  std::string kind;
  uint64_t count = 0;
  double critical_ns = 0;                      // of the critical path
  double waits_ns = 0;                         // of all ranks
  std::map<uint32_t, uint64_t> num_last = {};  // by the rank that was waited for
};

class RankSimulation {
 public:
  RankSimulation(const std::vector<SimulatedRank>& ranks, RankTasks tasks)
      : ranks_(ranks), tasks_(std::move(tasks)), times_(ranks.size()) {}

  Status run() {
    const SimulationResult result = simulate_full(tasks_.graph, timeline_);
    if (!result.is_done()) {
      return invalid_argument("the simulated ranks wait for each other in a circle, at " +
                              name_of(result.culprits[0]));
    }
    tasks_.graph.make_predecessors();
    for (uint32_t slot = 0; slot < tasks_.tasks.size(); ++slot) add_task(slot);
    for (const RankTasks::Operation& operation : tasks_.operations) add_operation(operation);
    for (const uint32_t slot : critical_path(tasks_.graph, timeline_)) {
      if (tasks_.tasks[slot].what != What::kOperation) continue;
      named_[name_of(slot)].critical_ns += length_of(slot);
    }
    return Status::ok();
  }

  void say(Console& console) const {
    console.say(fmt::format("simulated: {} on {}", duration_text(timeline_.makespan),
                            counted(ranks_.size(), "rank")));
    for (size_t r = 0; r < times_.size(); ++r) {
      const RankTimes& t = times_[r];
      console.say(
          fmt::format("rank {}: ends at {}, computes {}, waits {} for others and {} for "
                      "operations",
                      r, duration_text(t.end_ns), duration_text(t.computes_ns),
                      duration_text(t.waits_ns), duration_text(t.transfers_ns)));
    }
    if (const auto* const most = most_by(&NamedOperation::critical_ns)) {
      const auto& [name, operation] = *most;
      console.say(one_line(fmt::format("critical: {} ({}): {} of the critical path, in {}", name,
                                       operation.kind, duration_text(operation.critical_ns),
                                       counted(operation.count, "operation"))));
    } else {
      console.say("critical: no operation is on the critical path");
    }
    if (const auto* const most = most_by(&NamedOperation::waits_ns)) {
      const auto& [name, operation] = *most;
      const auto last = last_of(operation);
      console.say(one_line(fmt::format("most waited for: {} ({}): {}, for rank {} in {} of {}",
                                       name, operation.kind, duration_text(operation.waits_ns),
                                       last.first, last.second, operation.count)));
    }
  }

  Json json() const {
    Json ranks = Json::array();
    for (const RankTimes& t : times_) {
      ranks.push_back({{"end_ns", t.end_ns},
                       {"computes_ns", t.computes_ns},
                       {"waits_for_others_ns", t.waits_ns},
                       {"operations_ns", t.transfers_ns}});
    }
    Json operations = Json::array();
    for (const auto& [name, operation] : named_) {
      operations.push_back({{"name", name},
                            {"kind", operation.kind},
                            {"count", operation.count},
                            {"critical_ns", operation.critical_ns},
                            {"waits_ns", operation.waits_ns},
                            {"waited_for", last_of(operation).first}});
    }
    Json document = {{"makespan_ns", timeline_.makespan},
                     {"ranks", std::move(ranks)},
                     {"operations", std::move(operations)}};
    const auto* const most = most_by(&NamedOperation::critical_ns);
    document["critical"] = most == nullptr ? Json() : Json(most->first);
    return document;
  }

  std::string svg(const std::string& title) const {
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < tasks_.tasks.size(); ++slot) {
      if (tasks_.tasks[slot].what != What::kArrival) slots.push_back(slot);
    }
    const TimelineView<double> view{
        tasks_.graph,
        timeline_,
        slots,
        [this](uint32_t slot) { return name_of(slot); },
        [this](uint32_t device) {
          return device < ranks_.size() ? fmt::format("rank {}", device)
                                        : tasks_.lanes[device - ranks_.size()];
        },
        [this](uint32_t slot) { return tasks_.tasks[slot].what == What::kOperation; }};
    return timeline_svg(view, title);
  }

 private:
  using Named = std::map<std::string, NamedOperation>;

  double length_of(uint32_t slot) const { return tasks_.graph.task(slot).exe_time; }
  std::string name_of(uint32_t slot) const {
    const RankTasks::Task& task = tasks_.tasks[slot];
    const SimulatedRank& rank = ranks_[task.rank];
    return task.what == What::kControl ? rank.control_name(task.operand)
                                       : rank.launch_name(task.operand);
  }

  void add_task(uint32_t slot) {
    const RankTasks::Task& task = tasks_.tasks[slot];
    if (task.what == What::kOperation) return;
    RankTimes& times = times_[task.rank];
    times.computes_ns += length_of(slot);
    times.end_ns = std::max(times.end_ns, timeline_.tasks[slot].end);
  }

  void add_operation(const RankTasks::Operation& operation) {
    const TaskTimes<double>& own = timeline_.tasks[operation.task];
    const uint32_t first = operation.ranks[0];
    NamedOperation& named = named_[ranks_[first].launch_name(operation.launches[0])];
    named.kind = ranks_[first].operations[operation.launches[0]]->kind;
    ++named.count;
    size_t last = 0;
    for (size_t i = 0; i < operation.ranks.size(); ++i) {
      const double come = timeline_.tasks[operation.arrivals[i]].end;
      if (come > timeline_.tasks[operation.arrivals[last]].end) last = i;
      RankTimes& times = times_[operation.ranks[i]];
      times.waits_ns += own.start - come;
      times.transfers_ns += own.end - own.start;
      times.end_ns = std::max(times.end_ns, own.end);
      named.waits_ns += own.start - come;
    }
    ++named.num_last[operation.ranks[last]];
  }

  // Null where it is nothing of any.
  const Named::value_type* most_by(double NamedOperation::*ns) const {
    const Named::value_type* most = nullptr;
    for (const Named::value_type& each : named_) {
      if (each.second.*ns > (most == nullptr ? 0 : most->second.*ns)) most = &each;
    }
    return most;
  }
  static std::pair<uint32_t, uint64_t> last_of(const NamedOperation& operation) {
    return *std::ranges::max_element(operation.num_last, {},
                                     [](const auto& e) { return e.second; });
  }

  const std::vector<SimulatedRank>& ranks_;
  RankTasks tasks_;
  Timeline<double> timeline_;
  std::vector<RankTimes> times_;
  Named named_;
};

Result<RankLinks> read_links(const std::string& path) {
  if (path.empty()) return RankLinks();
  EDDY_ASSIGN_OR_RETURN(const std::string text, read_text(path, kMaxLinkBytes));
  auto links = parse_rank_links(text);
  if (!links.is_ok()) return std::move(links.take_status().prepend_message("--links " + path));
  return links;
}

Result<std::vector<SimulatedRank>> plan_all(const SimulateArguments& arguments,
                                            const Library& library, Console& console) {
  ModelArguments model;
  model.costs = arguments.costs;
  model.dims = arguments.dims;
  model.shapes = arguments.shapes;
  EDDY_ASSIGN_OR_RETURN(SessionOptions options, make_session_options(model));
  EDDY_ASSIGN_OR_RETURN(options.ranks, make_rank_options(arguments.ranks, arguments.file));
  const RankPlanRequest request{arguments.file, arguments.ranks, ""};
  std::vector<SimulatedRank> ranks;
  std::vector<RankSkeleton> skeletons;
  for (uint32_t rank = 0; rank < arguments.ranks.num_ranks; ++rank) {
    console.progress(fmt::format("planning rank {} of {}", rank, arguments.ranks.num_ranks));
    EDDY_ASSIGN_OR_RETURN(PlannedRank planned, plan_rank(library, request, options, rank, console));
    const NodeWork work = measured_work(planned.graph, options.costs.get());
    const std::string guesses = guesses_text(planned.graph, work);
    if (rank == 0 && !guesses.empty()) {
      console.remark("guessed: " + guesses + " (eddy measure --whole sees them)");
    }
    FluidCosts costs = plan_costs(planned.graph, planned.plan, work);
    auto operations = operations_of(planned);
    skeletons.push_back(planned.skeleton);
    ranks.push_back({std::move(planned), std::move(costs), std::move(operations)});
  }
  const RankProof proof = prove_ranks(skeletons);
  if (proof.is_safe()) return ranks;
  return invalid_argument(arguments.file +
                          ": ranks would mix up or deadlock: " + proof.violations[0]);
}

}  // namespace

Outcome simulate_over_ranks(const SimulateArguments& arguments, Console& console) {
  auto links = read_links(arguments.links);
  if (!links.is_ok()) return links.take_status();
  const Library library;
  auto ranks = plan_all(arguments, library, console);
  if (!ranks.is_ok()) return ranks.take_status();
  std::vector<RankProgram> programs;
  for (const SimulatedRank& rank : *ranks) {
    programs.push_back({rank.planned.plan.program, rank.costs, rank.operations});
  }
  auto tasks = join_rank_tasks(programs, *links);
  if (!tasks.is_ok()) return std::move(tasks.take_status().prepend_message(arguments.file));
  RankSimulation simulation(*ranks, std::move(*tasks));
  EDDY_RETURN_IF_ERROR(simulation.run());
  if (!arguments.svg.empty()) {
    const std::string title =
        fmt::format("{} on {}", arguments.file.substr(arguments.file.rfind('/') + 1),
                    counted(ranks->size(), "rank"));
    EDDY_RETURN_IF_ERROR(write_file(arguments.svg, simulation.svg(title)));
  }
  if (console.is_json()) {
    console.print(simulation.json());
  } else {
    simulation.say(console);
  }
  return Outcome::success();
}

}  // namespace eddy
