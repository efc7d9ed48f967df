// FaultRules: what runs may end with while faults are armed.
//
// The first error wins: a decided run keeps its status whatever happens later. Where the run that a
// fault has reached is known, the rules are exact:
//
//   an injected failure (kernel, predicate, host function) carries a number; one run, and only one,
//   ends with it, and names its node and the iterations around it
//   a run that is cancelled or past its deadline before any other fault ends with that status, or
//   had ended well
//
// Elsewhere (memory, streams, devices) a run's error is that of a fault that has fired.
//
// Threads: any, but for arm() and the checks, which are between runs.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "runtime/virtual/fault_plan.h"

namespace eddy::check {

// The error of what meets it; kOk: nothing fails.
StatusCode code_of(FaultKind kind);

class FaultRules {
 public:
  // Queries `plan` for the faults that have fired.
  explicit FaultRules(const FaultPlan& plan) : plan_(plan) {}

  // Forgets what was.
  void arm(std::vector<Fault> faults);
  bool is_armed(FaultKind kind) const;
  bool may_lose_device() const;
  // Whether other runs than the one that a fault meets may end with it.
  bool may_end_others() const;

  // The number of a failure that is injected into the node at `path`, to be part of its message.
  std::string inject(std::string path);
  // `kind`, which has just fired, ends the run of that number.
  void stop_run(size_t run, FaultKind kind);

  // Empty, or the rule that one failed run breaks.
  std::string check_error(const Status& status) const;
  // The same, of all runs that were there.
  std::string check_runs(std::span<const Status> runs) const;

 private:
  struct Stop {
    size_t run = 0;
    StatusCode code = StatusCode::kOk;
  };

  std::string check_injection(size_t number, std::span<const Status> runs) const;

  const FaultPlan& plan_;
  std::vector<Fault> armed_;
  mutable std::mutex mutex_;
  std::vector<std::string> paths_;  // under the mutex: of the nodes that were failed
  std::optional<Stop> first_stop_;  // under the mutex
};

}  // namespace eddy::check
