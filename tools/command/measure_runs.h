// Measuring contenders beside each other: rounds of A B A B, so that whatever disturbs the machine
// disturbs all of them.
//
// A sample is the mean time of a batch of runs, long enough for the clock; a contender gets as
// many samples as rounds, or fewer (at least kMinRounds) where a row would take longer than its
// budget.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "tools/command/console.h"

namespace eddy {

struct Contender {
  std::string name;
  std::function<Status()> run;
};

struct Samples {
  std::string name;
  std::vector<double> ns;  // per unit of work, sorted

  double best() const { return ns.front(); }
  double median() const { return ns[ns.size() / 2]; }
  // Bounds of the middle four fifths of the samples.
  double low() const { return ns[ns.size() / 10]; }
  double high() const { return ns[ns.size() - 1 - ns.size() / 10]; }
};

struct MeasureOptions {
  int rounds = 15;
  double budget_s = 4;  // of one row
  double min_sample_ns = 2e6;
  // Before each sample, and then a run that is not counted: threads of the contender before, which
  // look for work a while after a run, go to sleep.
  double pause_ns = 0;
};
inline constexpr int kMinRounds = 3;
// Of rows by several threads: ONNX Runtime's look for work some 20 ms after a run, and hold a
// processor meanwhile.
inline constexpr double kThreadsPauseNs = 60e6;

// The pause, and a run that is not counted. Nothing where there is none.
Status settle(const Contender& contender, double pause_ns);

// `units` is the work of one run: iterations, nodes, runs. Stops between samples when `should_stop`
// returns true.
Result<std::vector<Samples>> measure_runs(const std::vector<Contender>& contenders, double units,
                                          const MeasureOptions& options,
                                          const std::function<bool()>& should_stop);

Json samples_json(const Samples& samples);

}  // namespace eddy
