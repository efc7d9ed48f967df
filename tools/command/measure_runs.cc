#include "tools/command/measure_runs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "graph/base/check.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

Result<double> time_batch(const Contender& contender, int64_t batch) {
  const int64_t start_ns = now_ns();
  for (int64_t i = 0; i < batch; ++i) EDDY_RETURN_IF_ERROR(contender.run());
  EDDY_CHECK(batch > 0) << "a batch of no runs takes no time";
  return static_cast<double>(now_ns() - start_ns) / static_cast<double>(batch);
}

}  // namespace

Status settle(const Contender& contender, double pause_ns) {
  if (pause_ns <= 0) return Status::ok();
  std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<int64_t>(pause_ns)));
  return contender.run();
}

Result<std::vector<Samples>> measure_runs(const std::vector<Contender>& contenders, double units,
                                          const MeasureOptions& options,
                                          const std::function<bool()>& should_stop) {
  EDDY_CHECK(units > 0 && should_stop) << "a run of " << units << " units";
  std::vector<Samples> samples;
  std::vector<int64_t> batches;
  for (const Contender& contender : contenders) {
    EDDY_RETURN_IF_ERROR(contender.run());  // warms caches and pools
    EDDY_ASSIGN_OR_RETURN(const double once_ns, time_batch(contender, 1));
    batches.push_back(
        std::max<int64_t>(1, std::llround(options.min_sample_ns / std::max(once_ns, 1.0))));
    samples.push_back({contender.name, {}});
  }
  const int64_t start_ns = now_ns();
  for (int round = 0; round < options.rounds; ++round) {
    if (round >= kMinRounds && static_cast<double>(now_ns() - start_ns) > options.budget_s * 1e9) {
      break;
    }
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (should_stop()) return cancelled("interrupted");
      EDDY_RETURN_IF_ERROR(settle(contenders[i], options.pause_ns));
      EDDY_ASSIGN_OR_RETURN(const double run_ns, time_batch(contenders[i], batches[i]));
      samples[i].ns.push_back(run_ns / units);
    }
  }
  for (Samples& one : samples) std::sort(one.ns.begin(), one.ns.end());
  return samples;
}

Json samples_json(const Samples& samples) {
  return {{"best_ns", samples.best()},
          {"median_ns", samples.median()},
          {"p10_ns", samples.low()},
          {"p90_ns", samples.high()},
          {"samples", samples.ns.size()}};
}

}  // namespace eddy
