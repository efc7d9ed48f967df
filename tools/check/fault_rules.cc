#include "tools/check/fault_rules.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy::check {
namespace {

bool is_inside_node(FaultKind kind) {
  return kind == FaultKind::kKernel || kind == FaultKind::kPredicate ||
         kind == FaultKind::kHostFunction;
}

std::string tag(size_t number) { return "(failure " + std::to_string(number) + ")"; }

}  // namespace

StatusCode code_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kAllocation:
    case FaultKind::kCreateStream:
    case FaultKind::kCreateEvent:
    case FaultKind::kCreateGate:
    case FaultKind::kStack:
      return StatusCode::kResourceExhausted;
    case FaultKind::kEnqueue:
    case FaultKind::kRecord:
    case FaultKind::kWait:
    case FaultKind::kKillLane:
    case FaultKind::kLoseDevice:
      return StatusCode::kDeviceLost;
    case FaultKind::kKernel:
    case FaultKind::kPredicate:
    case FaultKind::kHostFunction:
      return StatusCode::kRunFailed;
    case FaultKind::kCallback:
      return StatusCode::kOk;
    case FaultKind::kCancel:
      return StatusCode::kCancelled;
    case FaultKind::kDeadline:
      return StatusCode::kDeadlineExceeded;
  }
  return StatusCode::kInternal;
}

void FaultRules::arm(std::vector<Fault> faults) {
  std::lock_guard lock(mutex_);
  armed_ = std::move(faults);
  paths_.clear();
  first_stop_.reset();
}

bool FaultRules::is_armed(FaultKind kind) const {
  return std::ranges::any_of(armed_, [&](const Fault& fault) { return fault.kind == kind; });
}

bool FaultRules::may_lose_device() const {
  return std::ranges::any_of(
      armed_, [](const Fault& fault) { return code_of(fault.kind) == StatusCode::kDeviceLost; });
}

bool FaultRules::may_end_others() const {
  return may_lose_device() || is_armed(FaultKind::kCancel) || is_armed(FaultKind::kStack);
}

std::string FaultRules::inject(std::string path) {
  std::lock_guard lock(mutex_);
  paths_.push_back(std::move(path));
  return tag(paths_.size());
}

void FaultRules::stop_run(size_t run, FaultKind kind) {
  // What the scheduler has no stacks for is decided before it begins.
  if (plan_.num_fired() != 1 || is_armed(FaultKind::kStack)) return;
  std::lock_guard lock(mutex_);
  first_stop_ = {run, code_of(kind)};
}

std::string FaultRules::check_error(const Status& status) const {
  // The scheduler counts its stacks by itself.
  bool is_expected = is_armed(FaultKind::kStack) && status.code() == code_of(FaultKind::kStack);
  const std::vector<FaultKind> fired = plan_.fired();
  for (FaultKind kind : fired) is_expected |= code_of(kind) == status.code();
  if (!is_expected) return "an unexpected status: " + status.to_string();
  if (status.message().empty()) return "a status without a message";
  const bool needs_path =
      !is_armed(FaultKind::kStack) && std::ranges::all_of(fired, is_inside_node);
  if (needs_path && status.path().empty()) return "no node is named: " + status.to_string();
  return {};
}

std::string FaultRules::check_injection(size_t number, std::span<const Status> runs) const {
  EDDY_CHECK(number >= 1 && number <= paths_.size()) << "failure " << number;
  const std::string& path = paths_[number - 1];
  size_t num_ended = 0;
  for (const Status& status : runs) {
    if (status.message().find(tag(number)) == std::string::npos) continue;
    ++num_ended;
    if (status.path() != path) {
      return "the node '" + path + "' was failed, and '" + status.path() + "' is named";
    }
  }
  if (num_ended == 1) return {};
  return "the failure of '" + path + "' is the end of " + std::to_string(num_ended) +
         " runs, not of one";
}

std::string FaultRules::check_runs(std::span<const Status> runs) const {
  std::lock_guard lock(mutex_);
  for (size_t number = 1; number <= paths_.size(); ++number) {
    if (std::string text = check_injection(number, runs); !text.empty()) return text;
  }
  if (!first_stop_ || first_stop_->run >= runs.size()) return {};
  const Status& status = runs[first_stop_->run];
  if (status.is_ok() || status.code() == first_stop_->code) return {};
  return "a run that had been told to end ends with: " + status.to_string();
}

}  // namespace eddy::check
