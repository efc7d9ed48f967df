#include "runtime/virtual/fault_plan.h"

#include "graph/base/check.h"

namespace eddy {

std::string_view fault_kind_name(FaultKind kind) {
  constexpr std::array<std::string_view, kNumFaultKinds> kNames = {
      "allocation", "create-stream", "create-event", "create-gate", "enqueue",   "record",
      "wait",       "kill-lane",     "lose-device",  "kernel",      "predicate", "host-function",
      "callback",   "stack",         "cancel",       "deadline"};
  static_assert(!kNames.back().empty(), "each kind has a name");
  EDDY_CHECK(static_cast<size_t>(kind) < kNames.size()) << "no such kind of fault";
  return kNames[static_cast<size_t>(kind)];
}

void FaultPlan::arm(std::vector<Fault> faults) {
  std::lock_guard lock(mutex_);
  faults_ = std::move(faults);
  fired_.clear();
  for (auto& count : counts_) count = 0;
  num_fired_ = 0;
}

bool FaultPlan::should_fail(FaultKind kind) {
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(static_cast<size_t>(kind) < kNumFaultKinds) << "no such kind of fault";
  const uint64_t number = counts_[static_cast<size_t>(kind)].fetch_add(1) + 1;
  for (const Fault& fault : faults_) {
    if (fault.kind != kind || fault.kth != number) continue;
    ++num_fired_;
    EDDY_DCHECK(fired_.size() < faults_.size()) << "a fault fires twice";
    fired_.push_back(kind);
    return true;
  }
  return false;
}

std::vector<FaultKind> FaultPlan::fired() const {
  std::lock_guard lock(mutex_);
  return fired_;
}

}  // namespace eddy
