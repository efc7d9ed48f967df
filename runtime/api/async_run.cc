#include "runtime/api/async_run.h"

#include <exception>
#include <thread>

#include "runtime/api/session_scope.h"

namespace eddy {

AsyncRun::AsyncRun(SessionCore& core, NamedTensors inputs, RunCallback callback,
                   const RunOptions& options)
    : core_(core),
      inputs_(std::move(inputs)),
      callback_(std::move(callback)),
      deadline_(options.timeout ? std::optional(std::chrono::steady_clock::now() + *options.timeout)
                                : std::nullopt),
      run_(std::in_place, core, options.trace_or_null) {
  handle_->session = &core;
  if (core.do_waiters_poll()) handle_->polled_or_null = core.device;
}

RunHandle AsyncRun::submit(SessionCore& core, Stream* stream_or_null, NamedTensors inputs,
                           RunCallback callback, const RunOptions& options) {
  std::shared_ptr<AsyncRun> run(
      new AsyncRun(core, std::move(inputs), std::move(callback), options));
  RunHandle handle(run->handle_);
  if (Status status = run->run_->bind_inputs(run->inputs_); !status.is_ok()) {
    post_end(std::move(run), std::move(status), false);
    return handle;
  }
  if (stream_or_null == nullptr) {
    take_turn(std::move(run));
    return handle;
  }
  run->self_ = run;
  const Result<bool> is_first = run->queue_on(*stream_or_null);
  if (!is_first.is_ok()) {
    run->self_ = nullptr;
    post_end(std::move(run), is_first.status(), false);
  } else if (*is_first) {
    run->on_complete();
  }
  return handle;
}

Result<bool> AsyncRun::queue_on(Stream& stream) {
  EDDY_ASSIGN_OR_RETURN(front_, core_.device->create_event());
  EDDY_ASSIGN_OR_RETURN(gate_, core_.device->create_gate());
  {
    std::lock_guard lock(core_.mutex);
    ++core_.num_behind_streams;
  }
  if (stream.record(*front_) && stream.hold(gate_)) return front_->listen_or_complete(*this);
  {
    std::lock_guard lock(core_.mutex);
    --core_.num_behind_streams;
    core_.changed.notify_all();
  }
  Status health = core_.device->health();
  return health.is_ok() ? internal_error("the stream refused a command and does not say why")
                        : health;
}

void AsyncRun::on_complete() {
  SessionCore& core = core_;
  take_turn(std::move(self_));
  std::lock_guard lock(core.mutex);
  --core.num_behind_streams;
  core.changed.notify_all();
}

void AsyncRun::take_turn(std::shared_ptr<AsyncRun> self) {
  AsyncRun& run = *self;
  Status status;
  if (run.core_.try_enter_or_queue(*run.run_, [self] { launch(self); }, status)) {
    launch(std::move(self));
  } else if (!status.is_ok()) {
    post_end(std::move(self), std::move(status), false);
  }
}

void AsyncRun::launch(std::shared_ptr<AsyncRun> self) {
  AsyncRun& run = *self;
  {
    std::scoped_lock lock(run.handle_->mutex, run.core_.mutex);
    run.handle_->run_or_null = &*run.run_;
    // A cancel or close that came before found no run to stop.
    if (run.handle_->is_cancelled || run.core_.is_closed) run.run_->stop(StopReason::kCancelled);
  }
  run.run_->launch(false, run.deadline_, [self = std::move(self)]() mutable {
    if (self->gate_) self->gate_->open();
    AsyncRun& ended = *self;
    ended.core_.callbacks.post([self = std::move(self)] {
      Status status = self->run_->finish();
      self->end(std::move(status), true);
    });
  });
}

void AsyncRun::post_end(std::shared_ptr<AsyncRun> self, Status status, bool has_entered) {
  if (self->gate_) self->gate_->open();
  SessionCore& core = self->core_;
  core.callbacks.post([self = std::move(self), status = std::move(status), has_entered] {
    self->end(status, has_entered);
  });
}

void AsyncRun::end(Status status, bool has_entered) {
  Result<NamedTensors> result =
      status.is_ok() ? Result<NamedTensors>(NamedTensors()) : Result<NamedTensors>(status);
  if (status.is_ok()) {
    std::vector<LoopReport> loops = run_->loop_reports();
    result = run_->collect_outputs();
    std::lock_guard lock(core_.mutex);
    core_.last_loops = std::move(loops);
  }
  {
    std::lock_guard lock(handle_->mutex);
    handle_->run_or_null = nullptr;
  }
  if (callback_) call_back(std::move(result));
  callback_ = nullptr;
  if (has_entered) core_.begin_leaving(*run_);
  run_.reset();
  inputs_.clear();
  front_.reset();
  if (has_entered) core_.end_leaving();
  // From here on the session may be gone.
  std::lock_guard lock(handle_->mutex);
  handle_->is_done = true;
  handle_->status = std::move(status);
  handle_->changed.notify_all();
}

// What a user's callback throws must not end the callback thread.
void AsyncRun::call_back(Result<NamedTensors> result) {
  SessionScope scope(&core_);
  try {
    callback_(std::move(result));
  } catch (const std::exception& error) {
    if (core_.options.log) core_.options.log(std::string("a run's callback threw: ") + error.what());
  } catch (...) {
    if (core_.options.log) core_.options.log("a run's callback threw something");
  }
}

RunHandle::RunHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}

Status RunHandle::wait() {
  if (SessionScope::is_inside(state_->session) && !is_done()) {
    return would_deadlock("a host function or callback may not wait for a run of its own session");
  }
  while (state_->polled_or_null != nullptr && !is_done()) {
    if (!state_->polled_or_null->poll()) std::this_thread::yield();
  }
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->is_done; });
  return state_->status;
}

bool RunHandle::is_done() const {
  std::lock_guard lock(state_->mutex);
  return state_->is_done;
}

void RunHandle::cancel() {
  std::lock_guard lock(state_->mutex);
  state_->is_cancelled = true;
  if (state_->run_or_null != nullptr) state_->run_or_null->stop(StopReason::kCancelled);
}

}  // namespace eddy
