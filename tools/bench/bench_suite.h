// BenchSuite: what the suites of eddy bench share: the rival where it is installed, rounds of
// measurement, the comparison of results, and the report.
//
// A suite adds its rows as it measures them; a result that differs from the rival's is printed at
// once, and finish() turns all rows into the outcome. A missed figure is no failure: machines
// differ.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/io/host_value.h"
#include "tools/bench/loop_cases.h"
#include "tools/bench/ort_rival.h"
#include "tools/command/console.h"
#include "tools/command/interrupts.h"
#include "tools/command/measure_runs.h"
#include "tools/command/outcome.h"

namespace eddy {

struct BenchOptions {
  std::string ort;     // libonnxruntime.so.1; empty: where it usually is
  std::string filter;  // only cases with this in their names
  int rounds = 15;
  double budget_s = 4;            // of one case
  std::vector<int> threads = {};  // 0: one for each processor; empty: as the suite has it
};

class BenchSuite {
 public:
  BenchSuite(std::string name, const BenchOptions& options, Console& console,
             Interrupts& interrupts);

  // Looks for the rival. That there is none is an error only where a file was named.
  Status open_rival();
  bool has_rival() const { return ort_ != nullptr; }
  // Needs a rival.
  const OrtLibrary& rival() const {
    EDDY_CHECK(ort_ != nullptr) << "there is no rival";
    return *ort_;
  }
  // Why there is none; empty where there is one.
  const std::string& rival_missing() const { return ort_missing_; }
  // The model of a file with the run's feed. Needs a rival.
  Result<std::unique_ptr<OrtModel>> load_rival(const std::string& path, EddyRun& run,
                                               int num_threads = 1) const;

  // The same once it has run; null, and why in `missing`, where there is no rival or it fails.
  std::unique_ptr<OrtModel> rival_or_null(const std::string& path, EddyRun& run, int num_threads,
                                          std::string& missing) const;

  bool is_wanted(const std::string& name) const {
    return name.find(options_.filter) != std::string::npos;
  }
  Console& console() { return console_; }
  Interrupts& interrupts() const { return interrupts_; }

  // Samples of each contender, in rounds; `units` is the work of one run. A sample takes
  // `min_sample_ns` or one run, whichever is longer.
  Result<std::vector<Samples>> measure(const std::vector<Contender>& contenders, double units,
                                       double min_sample_ns = MeasureOptions().min_sample_ns,
                                       double pause_ns = 0);

  // The same with several threads, which settle.
  Result<std::vector<Samples>> measure_with_threads(const std::vector<Contender>& contenders) {
    constexpr double kSampleNs = 50e6;
    return measure(contenders, 1, kSampleNs, kThreadsPauseNs);
  }

  // Outputs within rtol 1e-3, atol 1e-4: another order of summation, thousands of steps on.
  void compare(const std::string& name, const std::string& other,
               const std::vector<HostValue>& found, const std::vector<HostValue>& expected);
  void differs(std::string text);

  // A row for the reader and the same for the report.
  void add_row(const std::string& text, Json json);
  bool is_empty() const { return rows_.empty(); }
  // Prints the report. kDiffers when something did; an error when no case was wanted.
  Outcome finish();

 private:
  std::string name_;
  const BenchOptions options_;
  Console& console_;
  Interrupts& interrupts_;
  std::unique_ptr<OrtLibrary> ort_;
  std::string ort_missing_;
  std::vector<std::string> differences_;
  Json rows_ = Json::array();
};

// Of asked ones, 0 for each processor, or else of these.
std::vector<int> thread_counts(const std::vector<int>& asked,
                               const std::vector<int>& otherwise = {1, 0});

// "12.3 µs (12.5 µs, 12.4 µs to 13 µs)": best (median, 10 to 90 %).
std::string samples_text(const Samples& samples);

}  // namespace eddy
