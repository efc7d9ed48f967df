#include "graph/simulate/scenario_sample.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "graph/base/check.h"

namespace eddy {

bool ChoiceTree::advance() {
  EDDY_DCHECK(sizes_.size() == picks_.size()) << "the walk ended before its choices did";
  while (!picks_.empty() && picks_.back() + 1 == sizes_.back()) {
    picks_.pop_back();
    sizes_.pop_back();
  }
  sizes_.clear();
  if (picks_.empty()) return false;
  ++picks_.back();
  return true;
}

void ScenarioSample::fill(const std::vector<double>& quantiles, ScenarioReport& report) {
  std::ranges::sort(values_);
  double total = 0;
  for (const auto& [makespan, weight] : values_) total += weight;
  for (const auto& [makespan, weight] : values_) report.expectation += makespan * weight / total;
  report.best = values_.front().first;
  report.worst = std::max(report.worst, values_.back().first);
  if (!report.is_exact && values_.size() > 1) {
    double squares = 0;
    for (const auto& [makespan, weight] : values_) {
      squares += (makespan - report.expectation) * (makespan - report.expectation);
    }
    const auto count = static_cast<double>(values_.size());
    report.standard_error = std::sqrt(squares / (count - 1) / count);
  }
  for (const double quantile : quantiles) {
    double sum = 0;
    size_t i = 0;
    // Sums of weights are rounded; what is missing of 1 by that is no weight of its own.
    while (i + 1 < values_.size() && (sum += values_[i].second) < quantile * total * (1 - 1e-12)) {
      ++i;
    }
    report.quantiles.push_back(values_[i].first);
  }
}

Status check_scenario_options(const ScenarioOptions& options) {
  if (options.num_samples == 0) return invalid_argument("the number of samples must be above 0");
  for (const double quantile : options.quantiles) {
    if (!(quantile >= 0 && quantile <= 1)) {
      return invalid_argument(fmt::format("quantile {} is not between 0 and 1", quantile));
    }
  }
  return Status::ok();
}

}  // namespace eddy
