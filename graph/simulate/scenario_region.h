// ScenarioRegion: the entries of a list with loops and branches, how their decisions may fall, and
// the options and the report of all their scenarios (scenario.h has the contract).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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

}  // namespace eddy
