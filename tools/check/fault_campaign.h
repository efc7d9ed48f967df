// The fault campaign: everything on the virtual device that can fail is made to fail, the first
// time it is asked, the second, and so on until nothing fires any more; and pairs of faults.
//
// Each point is two runs in flight on one session and, once they have ended, a third; or one
// prepared call with the caller's own memory. Held after each:
//
//   each run ends once: one status, one callback, and the handle says the same
//   what fails says why: the code of a fault that has fired, of those that have met it the first;
//   for faults inside a node its name and the iterations around it (fault_rules.h)
//   whatever succeeds has the oracle's outputs, bit for bit
//   no step starts once its run has been decided; no step runs after the callback
//   nothing hangs: neither the virtual device (steps) nor the machine (seconds)
//   the caller's inputs are never written, its outputs not after the run
//   the next run is right, or says that the device is lost
//   a callback may ask the session what it likes: no lock is held while it is called
//   when the session goes nothing is left: bytes, events, queued work, file descriptors (streams,
//   strands and stacks that are left end the process, with a message)
//
// A violation is shrunk while it stays one.
//
// Threads: one a campaign, its callback thread, and the scheduler's for loops that the host drives.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "runtime/virtual/fault_plan.h"
#include "tools/check/fault_point.h"
#include "tools/check/generator.h"
#include "tools/check/shrink.h"

namespace eddy::check {

struct FaultOptions {
  uint64_t first_seed = 0;
  uint64_t num_seeds = 200;  // graphs
  uint64_t max_kth = 100'000;
  uint64_t pairs_per_graph = 20;
  size_t max_violations = 3;
  bool shrinks = true;
  GenerateOptions generate = fault_graphs();
  // Asked before each point; may be empty. A graph that it ends counts, with the points it had.
  std::function<bool()> is_time_up = {};
  // Called before each point with its faults, "allocation 3, cancel 7", and its graph's seed, also
  // while a graph is shrunk; may be empty.
  std::function<void(uint64_t seed, const std::string& faults)> before_point = {};
  std::chrono::milliseconds patience = FaultPointOptions().patience;
  FaultPlants plants = {};  // into every point; tests only

  // Small: a sweep visits every step of every run.
  static GenerateOptions fault_graphs();
};

struct FaultViolation {
  uint64_t seed = 0;
  std::string faults;     // "allocation 3, cancel 7"
  std::string what;       // of the graph as generated
  FailingGraph smallest;  // that still fails
};

struct FaultReport {
  uint64_t num_graphs = 0;
  uint64_t num_points = 0;
  std::array<uint64_t, kNumFaultKinds> fired = {};  // points at which a fault of the kind fired
  std::vector<FaultViolation> violations;
};

// One graph after another, for callers that share seeds out to several threads, a campaign each;
// run_faults is all of them in a row, and sees that no descriptor is left. first_seed and num_seeds
// are the caller's business.
class FaultCampaign {
 public:
  explicit FaultCampaign(FaultOptions options) : options_(std::move(options)) {}

  // False: enough violations; further graphs are not tried.
  bool meet(uint64_t seed);
  const FaultReport& report() const { return report_; }

 private:
  const FaultOptions options_;
  FaultReport report_;
};

// Descriptors that this process has open; and, when it has more or fewer than `before`, in one line
// that they are.
size_t count_descriptors();
std::string descriptors_left(size_t before);

FaultReport run_faults(const FaultOptions& options);

}  // namespace eddy::check
