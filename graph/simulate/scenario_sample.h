// What scenarios are gathered in and enumerated by. Internal to scenario and fluid_scenarios.
//
// ChoiceTree walks all sequences of choices, depth first: each walk calls pick() for one choice
// after the other, which may have different numbers of options after different beginnings;
// advance() moves the last choice on that can move.
//
// Threads: none. Cost: O(choices) a walk; fill() O(n log n).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/simulate/scenario_region.h"

namespace eddy {

class ChoiceTree {
 public:
  // The next choice of this walk, below num_options.
  size_t pick(size_t num_options) {
    EDDY_DCHECK(num_options > 0) << "no option to pick";
    const size_t place = sizes_.size();
    if (place == picks_.size()) picks_.push_back(0);
    sizes_.push_back(num_options);
    EDDY_DCHECK(place < picks_.size() && picks_[place] < num_options)
        << "option " << picks_[place] << " of " << num_options << " in place " << place;
    return picks_[place];
  }
  // To the next walk. False: that was the last one.
  bool advance();

 private:
  std::vector<size_t> picks_;
  std::vector<size_t> sizes_;  // of this walk's choices
};

// Makespans with weights.
class ScenarioSample {
 public:
  void add(double makespan, double weight) { values_.emplace_back(makespan, weight); }
  void clear() { values_.clear(); }
  // Everything but is_exact, which is read, num_scenarios and seed. A `worst` that is larger stays.
  void fill(const std::vector<double>& quantiles, ScenarioReport& report);

 private:
  std::vector<std::pair<double, double>> values_;
};

// No samples, or a quantile outside [0, 1].
Status check_scenario_options(const ScenarioOptions& options);

}  // namespace eddy
