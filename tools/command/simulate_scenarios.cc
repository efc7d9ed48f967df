// eddy simulate, of operator graphs with loops and branches: what they cost over all scenarios.
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/io/file_bytes.h"
#include "graph/simulate/full_simulation.h"
#include "graph/simulate/timeline_svg.h"
#include "graph/strategy/files/operator_file.h"
#include "runtime/api/library.h"
#include "tools/command/simulate.h"

namespace eddy {
namespace {

constexpr uint64_t kMaxDrawnTasks = 1'000'000;

// A time for people; --json has every digit. Files have units of their own.
std::string time_text(double time, const std::string& unit) {
  return fmt::format("{:.10g}{}", time, unit);
}

void say_report(const ScenarioReport& report, const ScenarioOptions& options,
                const std::string& unit, Console& console) {
  const std::string expectation = time_text(report.expectation, unit);
  console.say(
      report.is_exact
          ? report.num_scenarios == 1 ? std::string("one scenario")
                                      : fmt::format("all {} scenarios", report.num_scenarios)
          : fmt::format("{} scenarios sampled, seed {}", report.num_scenarios, report.seed));
  console.say(report.is_exact ? fmt::format("expected makespan {}", expectation)
                              : fmt::format("expected makespan {} +- {:.3g}{}", expectation,
                                            report.standard_error, unit));
  for (size_t i = 0; i < report.quantiles.size(); ++i) {
    console.say(fmt::format("{:g} % of runs within {}", options.quantiles[i] * 100,
                            time_text(report.quantiles[i], unit)));
  }
  console.say(fmt::format("best {}, worst {}", time_text(report.best, unit),
                          time_text(report.worst, unit)));
}

// One scenario of them, decisions among the tasks.
Status draw_scenario(const SimulateArguments& arguments, const ScenarioFile& file) {
  ScenarioOptions options;
  options.seed = arguments.seed;
  options.max_tasks = kMaxDrawnTasks;
  EDDY_ASSIGN_OR_RETURN(ExpandedScenario scenario, expand_scenario(file.root, options));
  scenario.graph.make_predecessors();
  Timeline<double> timeline;
  simulate_full(scenario.graph, timeline);
  std::vector<uint32_t> slots(scenario.graph.num_slots());
  std::iota(slots.begin(), slots.end(), 0u);
  const uint32_t num_nodes = file.topology.num_nodes();
  const TimelineView<double> view{
      scenario.graph,
      timeline,
      slots,
      [&](uint32_t slot) { return scenario.names[slot]; },
      [&](uint32_t device) { return file.topology.simulated_name(device); },
      [&](uint32_t slot) { return scenario.graph.task(slot).device >= num_nodes; }};
  return write_file(arguments.svg, timeline_svg(view, input_name(arguments) + ", one scenario"));
}

}  // namespace

Json scenarios_json(const ScenarioReport& report, const std::vector<double>& quantiles) {
  Json pairs = Json::array();
  for (size_t i = 0; i < report.quantiles.size(); ++i) {
    pairs.push_back({quantiles[i], report.quantiles[i]});
  }
  return {{"exact", report.is_exact},
          {"scenarios", report.num_scenarios},
          {"expectation", report.expectation},
          {"standard_error", report.standard_error},
          {"quantiles", std::move(pairs)},
          {"best", report.best},
          {"worst", report.worst},
          {"seed", report.seed}};
}

Status check_scenario_arguments(const SimulateArguments& arguments) {
  if (arguments.search) {
    return invalid_argument(
        "--search takes graphs without loops or branches, whose strategies have one makespan each; "
        "search the operators of a body in a file of their own");
  }
  if (!arguments.emit_tasks.empty()) {
    return invalid_argument(
        "--emit-tasks takes graphs without loops or branches: a task file holds one way that they "
        "can go; --svg draws one");
  }
  if (arguments.full) {
    return invalid_argument(
        "--full simulates anew after each edit, and graphs with loops or branches have no edits; "
        "leave it out");
  }
  return Status::ok();
}

Outcome say_scenarios(const SimulateArguments& arguments, const ScenarioFile& file,
                      Console& console, Interrupts& interrupts) {
  ScenarioOptions options;
  options.seed = arguments.seed;
  options.on_progress = [&console](uint64_t done, uint64_t count) {
    console.progress(fmt::format("scenario {} of {}", done, count));
  };
  const Interrupts::Patience patience(interrupts);
  options.should_stop = [&interrupts] { return interrupts.is_interrupted(); };
  auto report = evaluate_scenarios(file.root, options);
  if (!report.is_ok()) {
    return std::move(report.take_status().prepend_message(input_name(arguments)));
  }
  if (!arguments.svg.empty()) {
    Status status = draw_scenario(arguments, file);
    if (!status.is_ok()) return std::move(status.prepend_message(input_name(arguments)));
  }
  if (console.is_json()) {
    Json answer = {{"scenarios", scenarios_json(*report, options.quantiles)}};
    if (!file.estimated.empty()) answer["estimated"] = file.estimated;
    console.print(answer);
  } else {
    if (!file.estimated.empty()) {
      console.remark("estimated: times not given come from a roofline");
    }
    say_report(*report, options, arguments.file.ends_with(".onnx") ? " s" : "", console);
  }
  return Outcome::success();
}

Outcome simulate_scenarios(const SimulateArguments& arguments, const nlohmann::json& document,
                           Console& console, Interrupts& interrupts) {
  Status status = check_scenario_arguments(arguments);
  if (!status.is_ok()) return Outcome::usage(status.message());
  const Library library;
  auto file = read_scenario_file(document, &library.ops());
  if (!file.is_ok()) {
    return std::move(file.take_status().prepend_message(input_name(arguments)));
  }
  return say_scenarios(arguments, *file, console, interrupts);
}

}  // namespace eddy
