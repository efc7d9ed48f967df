// eddy simulate, of operator graphs with loops and branches: what they cost over all scenarios.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/strategy/scenario_file.h"
#include "runtime/api/library.h"
#include "tools/command/simulate.h"

namespace eddy {
namespace {

Json report_json(const ScenarioReport& report, const ScenarioOptions& options) {
  Json quantiles = Json::array();
  for (size_t i = 0; i < report.quantiles.size(); ++i) {
    quantiles.push_back({options.quantiles[i], report.quantiles[i]});
  }
  return {{"exact", report.is_exact},
          {"scenarios", report.num_scenarios},
          {"expectation", report.expectation},
          {"standard_error", report.standard_error},
          {"quantiles", std::move(quantiles)},
          {"best", report.best},
          {"worst", report.worst},
          {"seed", report.seed}};
}

void say_report(const ScenarioReport& report, const ScenarioOptions& options, Console& console) {
  console.say(report.is_exact ? fmt::format("all {} scenarios", report.num_scenarios)
                              : fmt::format("{} scenarios sampled, seed {}", report.num_scenarios,
                                            report.seed));
  console.say(report.is_exact ? fmt::format("expected makespan {}", report.expectation)
                              : fmt::format("expected makespan {} +- {:.3g}", report.expectation,
                                            report.standard_error));
  for (size_t i = 0; i < report.quantiles.size(); ++i) {
    console.say(
        fmt::format("{:g} % of runs within {}", options.quantiles[i] * 100, report.quantiles[i]));
  }
  console.say(fmt::format("best {}, worst {}", report.best, report.worst));
}

}  // namespace

Outcome simulate_scenarios(const SimulateArguments& arguments, const nlohmann::json& document,
                           Console& console) {
  if (arguments.search || !arguments.emit_tasks.empty() || !arguments.svg.empty()) {
    return Outcome::usage("--search, --emit-tasks and --svg take graphs without loops or branches");
  }
  const Library library;
  auto file = read_scenario_file(document, &library.ops());
  if (!file.is_ok()) {
    return std::move(file.take_status().prepend_message(input_name(arguments)));
  }
  ScenarioOptions options;
  options.seed = arguments.seed;
  auto report = evaluate_scenarios(file->root, options);
  if (!report.is_ok()) {
    return std::move(report.take_status().prepend_message(input_name(arguments)));
  }
  if (console.is_json()) {
    Json answer = {{"scenarios", report_json(*report, options)}};
    if (!file->estimated.empty()) answer["estimated"] = file->estimated;
    console.print(answer);
  } else {
    if (!file->estimated.empty()) {
      console.remark("estimated: times not given come from a roofline");
    }
    say_report(*report, options, console);
  }
  return Outcome::success();
}

}  // namespace eddy
