#include "tools/command/plan_prediction.h"

#include <algorithm>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/compile/plan_timeline.h"
#include "graph/io/file_bytes.h"
#include "graph/simulate/fluid_scenarios.h"
#include "tools/command/simulate.h"

namespace eddy {
namespace {

constexpr uint64_t kMaxMachineBytes = 1 << 20;
constexpr uint64_t kRounds[] = {1000, 16, 2};  // tried in turn
constexpr uint64_t kDrawnRounds = 16;          // more make no picture that anybody reads
constexpr uint64_t kMaxSteps = 2'000'000;
constexpr uint64_t kMaxDrawnSteps = 200'000;
constexpr uint64_t kMaxScenarioSteps = 10'000'000;  // of all scenarios together
constexpr uint64_t kFewestScenarios = 20;

// Nothing where there is one scenario, or time for a few only.
Result<std::optional<ScenarioReport>> over_scenarios(const Program& program,
                                                     const FluidCosts& costs,
                                                     const FluidMachine& machine,
                                                     const FluidTimeline& one,
                                                     const FluidOptions& simulating) {
  ScenarioOptions options;
  const uint64_t affordable = kMaxScenarioSteps / std::max<uint64_t>(one.num_steps, 1);
  options.max_exact = options.num_samples = std::min(options.num_samples, affordable);
  if (affordable < kFewestScenarios) return std::optional<ScenarioReport>();
  auto report = evaluate_fluid_scenarios(program, costs, machine, options, simulating);
  if (!report.is_ok()) {
    if (report.status().code() != StatusCode::kResourceExhausted) return report.take_status();
    return std::optional<ScenarioReport>();
  }
  if (report->num_scenarios == 1) return std::optional<ScenarioReport>();
  return std::optional<ScenarioReport>(std::move(*report));
}

// Simulates loops with fewer and fewer rounds until the simulation is short enough.
// options.max_rounds is the upper limit at the call and the number of rounds used at the return.
// Nothing if even the fewest rounds take too long.
Result<std::optional<FluidTimeline>> simulate_shortened(const Program& program,
                                                        const FluidCosts& costs,
                                                        const FluidMachine& machine,
                                                        FluidOptions& options) {
  const uint64_t most = options.max_rounds;
  for (const uint64_t rounds : kRounds) {
    options.max_rounds = std::min(rounds, most);
    auto timeline = simulate_fluid(program, costs, machine, options);
    if (timeline.is_ok()) return std::optional<FluidTimeline>(std::move(*timeline));
    if (timeline.status().code() != StatusCode::kResourceExhausted) return timeline.take_status();
  }
  return std::optional<FluidTimeline>();
}

}  // namespace

Result<std::shared_ptr<const FluidMachine>> read_machine(const std::string& path) {
  auto file = read_file(path, kMaxMachineBytes);
  if (!file.is_ok()) {
    return Status(file.status().code(), file.status().message() +
                                            "; --machine takes a JSON file as those in "
                                            "graph/simulate/machines");
  }
  const std::span<const std::byte> bytes = (*file)->bytes();
  auto machine = parse_fluid_machine({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!machine.is_ok())
    return std::move(machine.take_status().prepend_message("--machine " + path));
  return std::shared_ptr<const FluidMachine>(std::make_shared<FluidMachine>(std::move(*machine)));
}

Result<std::optional<Prediction>> predict_session(const Session& session,
                                                  const SessionOptions& options, bool wants_spans) {
  if ((!options.costs && !options.plan_for) || !options.make_devices.empty()) {
    return std::optional<Prediction>();
  }
  const FluidMachine machine = options.plan_for
                                   ? *options.plan_for
                                   : cpu_machine(static_cast<uint32_t>(session.num_workers()));
  Prediction prediction;
  prediction.machine = machine.name;
  const NodeWork work = work_on(session.graph(), machine, options.costs.get());
  prediction.guesses = guesses_text(session.graph(), work);
  const Program& program = session.plan().program;
  const FluidCosts costs = plan_costs(session.graph(), session.plan(), work);
  prediction.has_loops = !costs.loops.empty();
  FluidOptions simulating;
  simulating.max_steps = kMaxSteps;
  EDDY_ASSIGN_OR_RETURN(auto timeline, simulate_shortened(program, costs, machine, simulating));
  if (!timeline) return std::optional<Prediction>();
  prediction.timeline = std::move(*timeline);
  prediction.max_rounds = simulating.max_rounds;
  EDDY_ASSIGN_OR_RETURN(prediction.scenarios,
                        over_scenarios(program, costs, machine, prediction.timeline, simulating));
  if (!wants_spans) return std::optional<Prediction>(std::move(prediction));
  FluidOptions drawing;
  drawing.wants_spans = true;
  drawing.max_steps = kMaxDrawnSteps;
  drawing.max_rounds = kDrawnRounds;
  EDDY_ASSIGN_OR_RETURN(prediction.drawn, simulate_shortened(program, costs, machine, drawing));
  prediction.drawn_rounds = drawing.max_rounds;
  if (!prediction.drawn) return std::optional<Prediction>();
  return std::optional<Prediction>(std::move(prediction));
}

std::string prediction_text(const Prediction& prediction) {
  std::string text = fmt::format(
      "simulated: {} on {}", duration_text(prediction.timeline.makespan_ns), prediction.machine);
  if (prediction.has_loops) {
    text += fmt::format(", loops by at most {} rounds each", prediction.max_rounds);
  }
  if (!prediction.guesses.empty()) {
    text += fmt::format("; guessed: {} (eddy measure --whole sees them)", prediction.guesses);
  }
  if (!prediction.scenarios) return text;
  const ScenarioReport& report = *prediction.scenarios;
  text += fmt::format("; over {} scenarios{} {} expected", report.num_scenarios,
                      report.is_exact ? "" : " sampled", duration_text(report.expectation));
  EDDY_CHECK(report.quantiles.size() == ScenarioOptions().quantiles.size())
      << report.quantiles.size() << " quantiles";
  const std::vector<double> quantiles = ScenarioOptions().quantiles;
  for (size_t i = 0; i < quantiles.size(); ++i) {
    text +=
        fmt::format(", {:g} % within {}", quantiles[i] * 100, duration_text(report.quantiles[i]));
  }
  return text + fmt::format(", worst {}", duration_text(report.worst));
}

Json prediction_json(const Prediction& prediction) {
  Json json = {{"machine", prediction.machine},
               {"ns", prediction.timeline.makespan_ns},
               {"host_busy_ns", prediction.timeline.host_busy_ns},
               {"max_rounds", prediction.max_rounds},
               {"guessed", prediction.guesses}};
  if (prediction.scenarios) {
    json["scenarios"] = scenarios_json(*prediction.scenarios, ScenarioOptions().quantiles);
  }
  return json;
}

std::string prediction_svg(const Session& session, const Prediction& prediction,
                           const std::string& title) {
  EDDY_CHECK(prediction.drawn.has_value()) << "a picture was not asked for";
  return plan_timeline_svg(session.graph(), session.plan(), *prediction.drawn,
                           fmt::format("{} on {} (ns; at most {} rounds of a loop)", title,
                                       prediction.machine, prediction.drawn_rounds));
}

}  // namespace eddy
