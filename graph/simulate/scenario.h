// Scenarios: what a graph with loops and branches costs when it is not known how often a loop runs
// and which branch is taken; never one run at the mean. SCENARIOS.md has the rules and an example.
//
// A ScenarioRegion holds entries: tasks, loops and cases, with dependencies among the entries of
// the same region. One scenario settles every decision; expand_scenario() then writes the run out
// as plain tasks, and the full simulation gives its makespan. evaluate_scenarios() does so for all
// scenarios with their probabilities where they are few, and for seeded samples where they are
// many.
//
// A decision is a task of its own on `decision.device` that takes `decision.time`. Nothing of an
// iteration or branch starts before its decision has ended.
//
// Errors (invalid argument; each names the entry): dependency out of range or in a cycle, no or
// both of distribution and trace, probability that is negative or not finite or a sum that is not 1
// (within 1e-6), negative trips, branch out of range, times not valid, regions of wrong number, two
// loops or cases of one name, a follow of no case before it. Resource exhausted: a scenario longer
// than the limit. Cancelled: should_stop returned true. Threads: pure. Cost: scenarios * (tasks +
// edges of each).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/simulate/task_graph.h"

namespace eddy {

struct Decision {
  struct Likely {
    int64_t value;  // trips of a loop, branch of a case
    double probability;
  };
  std::vector<Likely> distribution = {};
  std::vector<int64_t> trace = {};
  double time = 0;
  uint32_t device = 0;
};

struct ScenarioEntry;

struct ScenarioRegion {
  std::vector<ScenarioEntry> entries;
};

struct ScenarioEntry {
  enum class Kind { kTask, kLoop, kCase, kFollow };
  Kind kind = Kind::kTask;
  std::string name;
  std::vector<uint32_t> deps = {};  // entries of the same region, by position

  double exe_time = 0;  // of a task
  uint32_t device = 0;

  Decision decision = {};                    // of a loop or case
  std::vector<ScenarioRegion> regions = {};  // a loop's before and after; a case's branches
  std::string follows = {};                  // the case whose branch a follow takes
};

struct ScenarioOptions {
  uint64_t seed = 1;
  uint64_t max_exact = 1000;                         // no more scenarios than this are taken all
  uint64_t num_samples = 1000;                       // otherwise
  uint64_t max_tasks = 10'000'000;                   // of one scenario
  std::vector<double> quantiles = {0.5, 0.9, 0.99};  // each in [0, 1]
  // Called before each scenario is simulated; both may be empty.
  std::function<void(uint64_t done, uint64_t count)> on_progress = {};
  std::function<bool()> should_stop = {};
};

struct ScenarioReport {
  bool is_exact = false;  // every scenario was simulated
  uint64_t num_scenarios = 0;
  double expectation = 0;
  double standard_error = 0;      // of the expectation; 0 where exact
  std::vector<double> quantiles;  // the smallest makespan m with P(makespan <= m) >= quantile
  double best = 0;                // the smallest makespan seen
  // The largest. Where not exact, the scenarios seen include, for this alone, one with every loop
  // at its most trips and every case on its branch with the most work, if the limit allows it.
  double worst = 0;
  uint64_t seed = 0;
};

Result<ScenarioReport> evaluate_scenarios(const ScenarioRegion& root,
                                          const ScenarioOptions& options = {});

// One scenario written out, for drawing and printing.
struct ExpandedScenario {
  TaskGraph<double> graph;         // ranks in the order of expansion
  std::vector<std::string> names;  // by slot: "decode[3]/attend", decisions "decode[3]?"
  std::vector<bool> is_decision;   // by slot
};

// The first scenario of the record where there is one, else sample 0 of the seed.
Result<ExpandedScenario> expand_scenario(const ScenarioRegion& root,
                                         const ScenarioOptions& options = {});

}  // namespace eddy
