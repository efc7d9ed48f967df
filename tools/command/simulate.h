// What the parts of `eddy simulate` share: its arguments, and the printing of timelines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "graph/simulate/scenario.h"
#include "graph/simulate/timeline_report.h"
#include "graph/strategy/files/operator_file.h"
#include "tools/command/console.h"
#include "tools/command/interrupts.h"
#include "tools/command/rank_options.h"

namespace eddy {

struct SimulateArguments {
  std::string file;
  bool full = false;
  std::string svg;
  std::string emit_tasks;

  bool search = false;
  std::string budget = "10";  // seconds, or "5000steps"
  uint64_t seed = 1;
  std::string output;  // of the search's best strategy

  // For models: their files hold neither a topology nor a strategy.
  std::string topology;
  std::string strategy;
  std::string costs;
  std::vector<std::string> dims;    // NAME=N
  std::vector<std::string> shapes;  // NAME=2x3

  // Of a model that communicates (rank_simulation.h).
  RankArguments ranks;
  std::string links;
};

// Collects the output of a run of edits: JSON for machines, text for people, a picture.
//
//   TimelineSaying saying(arguments, console);
//   saying.add(view, "initial");            // then one after each edit
//   return saying.finish(last_view);
class TimelineSaying {
 public:
  TimelineSaying(const SimulateArguments& arguments, Console& console)
      : arguments_(arguments), console_(console) {}

  template <TimeValue Time>
  void add(const TimelineView<Time>& view, const std::string& title) {
    if (console_.is_json()) {
      json_ += num_added_ == 0 ? "" : ",";
      append_timeline_json(view, json_);
    } else if (num_added_ == 0) {
      say_lines(timeline_text(view, title));
    } else {
      say_makespan(title, makespan_text(view.timeline.makespan));
    }
    ++num_added_;
  }

  // Operators with estimated times, for the JSON document.
  void mark_estimated(std::vector<std::string> names) { estimated_ = std::move(names); }

  // The last timeline: drawn, and shown whole where edits came between it and the first.
  template <TimeValue Time>
  Outcome finish(const TimelineView<Time>& view) {
    const std::string picture = arguments_.svg.empty() ? "" : picture_of(view);
    if (!console_.is_json() && num_added_ > 1) say_lines(timeline_text(view, "at the end"));
    return finish_output(picture);
  }

 private:
  static std::string makespan_text(int64_t makespan);
  static std::string makespan_text(double makespan);
  std::string picture_of(const TimelineView<int64_t>& view) const;
  std::string picture_of(const TimelineView<double>& view) const;
  void say_lines(const std::string& text);
  void say_makespan(const std::string& title, const std::string& makespan);
  Outcome finish_output(const std::string& picture);

  const SimulateArguments& arguments_;
  Console& console_;
  std::string json_;
  std::vector<std::string> estimated_;
  std::string text_;  // printed at the end: an edit may still be refused
  size_t num_added_ = 0;
};

// An operator-graph file: its timelines, named by parts and transfers.
Outcome simulate_operators(const SimulateArguments& arguments, const nlohmann::json& document,
                           Console& console, Interrupts& interrupts);

// The same of an operator graph that is read already.
Outcome simulate_operator_graph(const SimulateArguments& arguments, const OperatorFile& file,
                                Console& console);
// {operator: {"degree", "devices"}...}, or a document that has that under "strategy".
Result<nlohmann::json> read_strategy_file(const std::string& path);

// An ONNX model: on one CPU device, or on --topology under --strategy. Times in seconds.
Outcome simulate_model(const SimulateArguments& arguments, Console& console,
                       Interrupts& interrupts);
// An operator-graph file with loops or branches: expectation, quantiles and extremes.
Outcome simulate_scenarios(const SimulateArguments& arguments, const nlohmann::json& document,
                           Console& console, Interrupts& interrupts);
// The same of scenarios that are made already, for arguments that were checked.
Status check_scenario_arguments(const SimulateArguments& arguments);
Outcome say_scenarios(const SimulateArguments& arguments, const ScenarioFile& file,
                      Console& console, Interrupts& interrupts);
Json scenarios_json(const ScenarioReport& report, const std::vector<double>& quantiles);
// --search: searches for a better strategy and prints it.
Outcome search_operators(const SimulateArguments& arguments, const OperatorFile& file,
                         Console& console, Interrupts& interrupts);

// --svg and --emit-tasks, as far as they are given: the timeline and tasks of this strategy.
Status write_pictures(const SimulateArguments& arguments, const OperatorFile& file,
                      const Strategy& strategy);

// Prints the operators with times from a roofline as a remark, and returns them.
std::vector<std::string> say_estimates(const OperatorFile& file, Console& console);

// "standard input" or the path, for the start of messages.
std::string input_name(const SimulateArguments& arguments);

}  // namespace eddy
