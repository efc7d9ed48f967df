// What eddy plan prints of a plan's time: simulated on the machine it was made for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "graph/compile/predict_plan.h"
#include "graph/simulate/scenario.h"
#include "runtime/api/session.h"
#include "tools/command/console.h"

namespace eddy {

// The argument of --machine: a JSON file as fluid_machine.h describes it.
Result<std::shared_ptr<const FluidMachine>> read_machine(const std::string& path);

struct Prediction {
  std::string machine;
  std::string guesses;  // decisions neither seen nor expected; empty: none
  FluidTimeline timeline;
  bool has_loops = false;
  uint64_t max_rounds = 0;  // longer loops were simulated by that many rounds
  // The same with spans and fewer rounds, for a picture; where asked for.
  std::optional<FluidTimeline> drawn;
  uint64_t drawn_rounds = 0;
  // Where decisions make a difference and the time for it is short; in nanoseconds.
  std::optional<ScenarioReport> scenarios;
};

// Nothing where neither costs nor a machine's throughput are known, where the plan is one of two
// devices, or where it is too long even with its loops cut short.
Result<std::optional<Prediction>> predict_session(const Session& session,
                                                  const SessionOptions& options, bool wants_spans);

std::string prediction_text(const Prediction& prediction);
Json prediction_json(const Prediction& prediction);
std::string prediction_svg(const Session& session, const Prediction& prediction,
                           const std::string& title);

}  // namespace eddy
