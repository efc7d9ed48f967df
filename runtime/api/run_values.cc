#include "runtime/api/run_values.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "runtime/api/session_core.h"
#include "runtime/api/session_scope.h"

namespace eddy {

RunValues::RunValues(SessionCore& core, TraceRecorder* trace_or_null)
    : core_(core), trace_or_null_(trace_or_null) {}

RunValues::~RunValues() {
  if (state_ != nullptr) drop_state();
}

Status RunValues::give_streams(const std::vector<StreamedOutput>& streams) {
  streams_.clear();
  if (!streams.empty() && trace_or_null_ != nullptr) {
    return invalid_argument("a traced run streams no outputs; trace another run");
  }
  for (const StreamedOutput& each : streams) {
    if (each.stream == nullptr) return invalid_argument("a streamed output has no stream");
    EDDY_ASSIGN_OR_RETURN(const StreamedRow at, find_row(each, streams_.size()));
    if (!each.stream->reserve(core_.runs)) {
      return invalid_argument("the stream of output '" + each.output +
                              "' takes rows of another output or run; make one for each");
    }
    streams_.push_back({each.output, each.stream, at});
  }
  return Status::ok();
}

// Runs of one Call stream the same again and again.
Result<StreamedRow> RunValues::find_row(const StreamedOutput& streamed, size_t index) const {
  if (index < last_streams_.size() && last_streams_[index].output == streamed.output) {
    return last_streams_[index].at;
  }
  return find_streamed_row(core_.graph(), core_.outputs, streamed.output);
}

void RunValues::leave_streams(const Status& status) const {
  for (const Streamed& each : streams_) each.stream->leave(status);
}

void RunValues::end_all(const Status& status) {
  for (Streamed& each : streams_) {
    if (state_ != nullptr) state_->loop(each.at.loop).stack(each.at.row).sink_or_null = nullptr;
    std::exchange(each.stream, nullptr)->end(status);
  }
  last_streams_.swap(streams_);
  streams_.clear();
}

std::unique_ptr<BoundRun> RunValues::make_state() const {
  if (trace_or_null_ != nullptr) return core_.run_pool->make_traced(*trace_or_null_);
  return streams_.empty() ? core_.run_pool->acquire() : core_.run_pool->acquire_streaming();
}

Status RunValues::take_state() {
  EDDY_CHECK(state_ == nullptr) << "a run takes two states";
  state_ = make_state();
  are_places_known_ = false;
  is_streaming_ = !streams_.empty();
  Status status;
  for (size_t i = 0; i < given_.size() && status.is_ok(); ++i) status = put(i, *given_[i]);
  if (!status.is_ok()) drop_state();
  return status;
}

Status RunValues::adapt_state() {
  EDDY_DCHECK(state_ != nullptr) << "a run that is kept has lost its state";
  if (is_streaming_ == !streams_.empty()) return Status::ok();
  std::unique_ptr<BoundRun> old = std::exchange(state_, make_state());
  are_places_known_ = false;
  is_streaming_ = !streams_.empty();
  Status status;
  for (size_t i = 0; i < is_bound_.size() && status.is_ok(); ++i) {
    const ValueId input = core_.graph().inputs()[i];
    status = state_->slot(input).share(old->slot(input), state_->allocator());
  }
  release(std::move(old));
  return status;
}

void RunValues::drop_state() { release(std::move(state_)); }

// What the slots hold of the caller's goes before the state is used again.
void RunValues::release(std::unique_ptr<BoundRun> state) {
  EDDY_DCHECK(state != nullptr) << "no state is given back";
  for (const ValueId input : core_.graph().inputs()) state->slot(input).set_none();
  for (size_t i = 0; i < bound_outputs_.size(); ++i) state->unbind_output(i);
  state->reset();
  state->control.stop.store(StopReason::kRunning, std::memory_order_relaxed);
  if (trace_or_null_ == nullptr) core_.run_pool->release(std::move(state));
}

void RunValues::begin() {
  for (const Streamed& each : streams_) {
    state_->loop(each.at.loop).stack(each.at.row).sink_or_null = each.stream.get();
    each.stream->begin([&core = core_](std::function<void()> deliver) {
      core.callbacks.post([&core, deliver = std::move(deliver)] {
        const SessionScope scope(&core, nullptr);
        deliver();
      });
    });
  }
  if (!misaligned_.empty()) {
    if (Status status = align_inputs(); !status.is_ok()) state_->control.fail(std::move(status));
  }
  if (is_any_bound_) place_outputs();
}

Status RunValues::end_status(StopReason outcome) {
  switch (outcome) {
    case StopReason::kRunning:
      break;
    case StopReason::kFailed:
      return state_->take_error();
    case StopReason::kCancelled:
      return state_->found_at(cancelled("the run was cancelled"));
    case StopReason::kDeadline:
      return state_->found_at(deadline_exceeded("the run passed its deadline"));
  }
  return internal_error("a run has failed without a reason");
}

// The next run of the state can be described before it begins.
Status RunValues::finish(StopReason outcome) {
  if (outcome == StopReason::kRunning) {
    state_->forget_nodes();
    return is_any_bound_ ? copy_outputs() : Status::ok();
  }
  Status status = end_status(outcome);
  state_->forget_nodes();
  state_->reset();
  return status;
}

}  // namespace eddy
