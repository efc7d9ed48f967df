#include "runtime/api/loop_reports.h"

#include "graph/base/check.h"

namespace eddy {

void LoopReports::add(NodeId loop, LoopReport report) {
  loops_.push_back(loop);
  last_.push_back(report);
  planned_.push_back(std::move(report));
}

void LoopReports::count_all(RunState& state) {
  int64_t taken = 0;
  for (const NodeId loop : loops_) taken += state.loop(loop).take_iterations();
  num_iterations_.fetch_add(static_cast<uint64_t>(taken), std::memory_order_relaxed);
}

void LoopReports::update_all(RunState& state, const Executable& executable) {
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(last_.size() == loops_.size() && planned_.size() == loops_.size())
      << "a report for each loop";
  for (size_t i = 0; i < loops_.size(); ++i) {
    update_one(state, executable, i);
    if (why_not_recorded_.empty() || last_[i].driven != "host") continue;
    if (planned_[i].driven == "host") last_[i].reason = planned_[i].reason;
    last_[i].reason += "; issued node by node, not recorded: " + why_not_recorded_;
  }
}

void LoopReports::update_one(RunState& state, const Executable& executable, size_t i) {
  LoopState& loop = state.loop(loops_[i]);
  last_[i].iterations = loop.iteration();
  if (planned_[i].driven == "host" || executable.num_devices() == 1) return;
  // One that has not been entered is as it would have been.
  const bool is_driven = loop.is_driven_by_device() || last_[i].iterations == 0;
  last_[i].driven = is_driven ? "device" : "host";
  const LoopChoice* choice = executable.loop_choice_or_null(loops_[i]);
  const std::string measured = choice == nullptr ? "" : choice->text();
  last_[i].reason = !measured.empty() ? measured
                    : is_driven       ? planned_[i].reason
                                      : state.why_by_host(loops_[i]);
  const std::string how = is_driven ? state.how_by_device(loops_[i]) : "";
  if (measured.empty() && !how.empty()) last_[i].reason += "; " + how;
}

bool LoopReports::note_refusal(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (!why_not_recorded_.empty()) return false;
  why_not_recorded_ = why;
  return true;
}

std::vector<LoopReport> LoopReports::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace eddy
