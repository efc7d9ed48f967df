// eddy simulate, of operator graphs under a strategy.
#include <algorithm>
#include <iterator>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/io/file_bytes.h"
#include "graph/simulate/timeline_svg.h"
#include "graph/strategy/files/operator_file.h"
#include "graph/strategy/operators/memory_use.h"
#include "graph/strategy/operators/part_cost.h"
#include "graph/strategy/tasks/strategy_simulation.h"
#include "graph/strategy/tasks/task_label.h"
#include "runtime/api/library.h"
#include "tools/command/simulate.h"

namespace eddy {
namespace {

std::string change_title(size_t index, const ConfigEdit& edit, const OperatorGraph& graph) {
  if (edit.size() != 1) return fmt::format("edit {} (batch of {})", index, edit.size());
  return fmt::format("edit {} (set_config {})", index, graph.operators[edit[0].op].name);
}

// The tasks of a strategy, as they are now.
class StrategyView {
 public:
  StrategyView(const OperatorFile& file, const StrategySimulation& simulation)
      : file_(file), simulation_(simulation) {}

  TimelineView<double> view() {
    snapshot_ = simulation_.snapshot();
    slots_.resize(snapshot_.graph.num_slots());
    std::iota(slots_.begin(), slots_.end(), 0);
    return {snapshot_.graph,
            snapshot_.timeline,
            slots_,
            [this](uint32_t slot) {
              return task_name(snapshot_.labels[slot], file_.graph, file_.topology);
            },
            [this](uint32_t device) { return file_.topology.simulated_name(device); },
            [this](uint32_t slot) { return is_communication(snapshot_.labels[slot]); }};
  }

 private:
  const OperatorFile& file_;
  const StrategySimulation& simulation_;
  StrategySnapshot snapshot_;
  std::vector<uint32_t> slots_;
};

// As a task file. Ids are places in the order of ranks, so that ties fall the same way.
std::string task_file_text(const TimelineView<double>& view) {
  std::vector<uint32_t> ids(view.graph.num_slots());
  for (size_t i = 0; i < view.slots.size(); ++i) ids[view.slots[i]] = static_cast<uint32_t>(i);
  std::string text = "{\"tasks\":[";
  const auto out = std::back_inserter(text);
  for (const uint32_t slot : view.slots) {
    const auto& task = view.graph.task(slot);
    fmt::format_to(out, "{}\n{{\"id\":{},\"name\":{},\"exe_time\":{},\"device\":{},\"deps\":[",
                   ids[slot] == 0 ? "" : ",", ids[slot],
                   nlohmann::json(view.task_name(slot)).dump(), task.exe_time,
                   nlohmann::json(view.device_name(task.device)).dump());
    const char* separator = "";
    for (const uint32_t from : view.graph.predecessors(slot)) {
      fmt::format_to(out, "{}{}", separator, ids[from]);
      separator = ",";
    }
    text += "]}";
  }
  return text + "\n]}\n";
}

// In JSON tasks are known by their names alone.
Status check_names(const TimelineView<double>& view) {
  std::vector<std::string> names;
  for (const uint32_t slot : view.slots) names.push_back(view.task_name(slot));
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return Status::ok();
  return invalid_argument(fmt::format(
      "two tasks are called '{}', since an operator's name looks like that of another one's task; "
      "give the operator another name",
      *twice));
}

Status apply_edit(const ConfigEdit& edit, bool is_full, StrategySimulation& simulation) {
  if (is_full) {
    Strategy strategy = simulation.strategy();
    for (const ConfigChange& change : edit) strategy[change.op] = change.config;
    return simulation.reset(std::move(strategy));
  }
  for (const ConfigChange& change : edit) simulation.change(change.op, change.config);
  EDDY_RETURN_IF_ERROR(simulation.simulate().take_status());
  simulation.commit();
  return Status::ok();
}

}  // namespace

Status write_pictures(const SimulateArguments& arguments, const OperatorFile& file,
                      const Strategy& strategy) {
  if (arguments.svg.empty() && arguments.emit_tasks.empty()) return Status::ok();
  StrategySimulation simulation(file.graph, file.topology);
  simulation.keep_labels();
  EDDY_RETURN_IF_ERROR(simulation.reset(strategy));
  StrategyView view(file, simulation);
  if (!arguments.emit_tasks.empty()) {
    EDDY_RETURN_IF_ERROR(write_file(arguments.emit_tasks, task_file_text(view.view())));
  }
  if (arguments.svg.empty()) return Status::ok();
  return write_file(arguments.svg, timeline_svg(view.view(), input_name(arguments)));
}

std::vector<std::string> say_estimates(const OperatorFile& file, Console& console) {
  std::vector<std::string> names;
  for (const Operator& op : file.graph.operators) {
    if (is_estimated(op)) names.push_back(op.name);
  }
  if (names.empty()) return names;
  const PartCost costs(file.graph, file.topology);
  console.remark(costs.uses_assumed_rates()
                     ? fmt::format("estimated: times not given come from a roofline with assumed "
                                   "rates of {:g} flop/s and {:g} bytes/s",
                                   kAssumedFlops, kAssumedMemoryRate)
                     : "estimated: times not given come from a roofline over the devices' rates");
  return names;
}

Outcome simulate_operators(const SimulateArguments& arguments, const nlohmann::json& document,
                           Console& console, Interrupts& interrupts) {
  if (has_loops_or_branches(document)) {
    return simulate_scenarios(arguments, document, console, interrupts);
  }
  const Library library;
  auto file = parse_operator_file(document, &library.ops());
  if (!file.is_ok()) {
    return std::move(file.take_status().prepend_message(input_name(arguments)));
  }
  if (arguments.search) return search_operators(arguments, *file, console, interrupts);
  return simulate_operator_graph(arguments, *file, console);
}

Outcome simulate_operator_graph(const SimulateArguments& arguments, const OperatorFile& file,
                                Console& console) {
  const auto in_file = [&arguments](Status status) {
    status.prepend_message(input_name(arguments));
    return status;
  };
  Status status = check_memory(file.graph, file.topology, file.strategy);
  if (!status.is_ok()) return in_file(std::move(status));
  StrategySimulation simulation(file.graph, file.topology);
  simulation.keep_labels();
  status = simulation.reset(file.strategy);
  if (!status.is_ok()) return in_file(std::move(status));
  StrategyView view(file, simulation);
  if (!arguments.emit_tasks.empty()) {
    status = write_file(arguments.emit_tasks, task_file_text(view.view()));
    if (!status.is_ok()) return status;
  }
  TimelineSaying saying(arguments, console);
  saying.mark_estimated(say_estimates(file, console));
  const auto say = [&](const std::string& title) {
    const TimelineView<double> now = view.view();
    if (console.is_json()) EDDY_RETURN_IF_ERROR(check_names(now));
    saying.add(now, title);
    return Status::ok();
  };
  status = say("initial");
  if (!status.is_ok()) return in_file(std::move(status));
  for (size_t i = 0; i < file.edits.size(); ++i) {
    status = apply_edit(file.edits[i], arguments.full, simulation);
    if (status.is_ok()) status = say(change_title(i, file.edits[i], file.graph));
    if (!status.is_ok()) {
      return in_file(std::move(status.prepend_message(fmt::format("edit {}", i))));
    }
    if (i % 64 == 63) console.progress(fmt::format("edit {} of {}", i + 1, file.edits.size()));
  }
  return saying.finish(view.view());
}

}  // namespace eddy
