#include "runtime/api/async_run.h"

#include <exception>
#include <new>
#include <thread>

#include "runtime/api/session_scope.h"

namespace eddy {
namespace {

Status no_memory() { return resource_exhausted("no memory for what a run needs"); }

}  // namespace

AsyncRun::AsyncRun(SessionCore& core, NamedTensors inputs, const RunOptions& options)
    : core_(core),
      inputs_(std::move(inputs)),
      deadline_(deadline_of(options)),
      run_(std::in_place, core, options.trace_or_null) {
  handle_->async_or_null = this;
  handle_->session = &core;
  handle_->threads = core.threads.get();
  handle_->fork_guard = core.fork_guard;
  if (core.do_waiters_poll()) handle_->polled_or_null = core.devices[0].device;
}

RunHandle AsyncRun::submit(SessionCore& core, Stream* stream_or_null, NamedTensors inputs,
                           RunCallback callback, const RunOptions& options) {
  if (core.is_in_child()) return refuse(core, callback, options, ForkGuard::error());
  if (Status status = core.prepare_threads(
          {.callback = true, .timer = deadline_of(options).has_value(), .workers = true});
      !status.is_ok()) {
    return refuse(core, callback, options, std::move(status));
  }
  if (Status status = core.may_submit(); !status.is_ok()) {
    return refuse(core, callback, options, std::move(status));
  }
  std::shared_ptr<AsyncRun> run;
  try {
    run.reset(new AsyncRun(core, std::move(inputs), options));
  } catch (const std::bad_alloc&) {
    return refuse(core, callback, options, no_memory());
  }
  run->callback_ = std::move(callback);
  RunHandle handle(run->handle_);
  if (Status status = run->prepare(options.streams); !status.is_ok()) {
    post_end(std::move(run), std::move(status));
  } else if (stream_or_null != nullptr) {
    AsyncRun& self = *run;
    self.submit_to(*stream_or_null, std::move(run));
  } else {
    take_turn(std::move(run));
  }
  return handle;
}

Status AsyncRun::prepare(const std::vector<StreamedOutput>& streams) try {
  EDDY_RETURN_IF_ERROR(run_->give_streams(streams));
  EDDY_RETURN_IF_ERROR(run_->give_inputs(inputs_));
  if (deadline_) {
    timer_.arm(core_.scheduler(), *deadline_,
               [state = handle_] { stop(*state, StopReason::kDeadline); });
  }
  return Status::ok();
} catch (const std::bad_alloc&) {
  return no_memory();
}

RunHandle AsyncRun::refuse(SessionCore& core, const RunCallback& callback,
                           const RunOptions& options, Status why) {
  for (const StreamedOutput& each : options.streams) {
    if (each.stream != nullptr) each.stream->end(why);
  }
  auto state = std::make_shared<RunHandle::State>();
  state->is_done = true;
  state->status = why;
  state->fork_guard = core.fork_guard;
  call_back(core, callback, std::move(why));
  return RunHandle(std::move(state));
}

void AsyncRun::submit_to(Stream& stream, std::shared_ptr<AsyncRun> self) {
  self_ = self;
  const Result<bool> is_first = queue_on(stream);
  if (!is_first.is_ok()) {
    self_ = nullptr;
    return post_end(std::move(self), is_first.status());
  }
  if (*is_first) return on_complete();
  std::function<void()> end_early;
  {
    std::lock_guard lock(handle_->mutex);
    if (phase_ == Phase::kStarting) phase_ = Phase::kBehindStream;
    if (wish_ != StopReason::kRunning) end_early = leave_wait();
  }
  if (end_early) end_early();
}

Result<bool> AsyncRun::queue_on(Stream& stream) {
  Device& device = core_.stream_device();
  EDDY_ASSIGN_OR_RETURN(front_, device.create_event());
  EDDY_ASSIGN_OR_RETURN(gate_, device.create_gate());
  core_.enter_stream({this, [state = handle_] { stop(*state, StopReason::kCancelled); }});
  if (stream.record(*front_) && stream.hold(gate_)) return front_->listen_or_complete(*this);
  core_.leave_stream(this);
  Status health = device.health();
  return health.is_ok() ? run_failed("the stream takes no commands; if it captures, end that first")
                        : health;
}

void AsyncRun::on_complete() {
  SessionCore& core = core_;
  std::shared_ptr<AsyncRun> self;
  bool has_left = false;
  {
    std::lock_guard lock(handle_->mutex);
    self = std::move(self_);
    has_left = has_left_stream_;
    if (!has_left) phase_ = Phase::kTurn;
  }
  if (has_left) {  // what is left of it goes elsewhere: the event is still calling us
    return core.callbacks.post([self = std::move(self), &core]() mutable {
      const void* const run = self.get();
      self->front_.reset();
      self = nullptr;
      core.leave_stream(run);
    });
  }
  auto go_on = [self = std::move(self), &core]() mutable {
    const void* const run = self.get();
    take_turn(std::move(self));
    core.leave_stream(run);
  };
  core.start_run(std::move(go_on));
}

Status AsyncRun::wish_status(StopReason wish, const char* waited_for) {
  const std::string where = std::string(" while it waited for its ") + waited_for;
  return wish == StopReason::kDeadline ? deadline_exceeded("the run passed its deadline" + where)
                                       : cancelled("the run was cancelled" + where);
}

std::function<void()> AsyncRun::leave_wait() {
  SessionCore& core = core_;
  if (phase_ == Phase::kTurn) {
    auto give_up = core.leave_queue(*run_);
    if (!give_up) return {};
    // What they hold of the run goes before the session may.
    return [&core, give_up = std::move(give_up), status = wish_status(wish_, "turn")]() mutable {
      give_up(status);
      give_up = nullptr;
      core.let_go();
    };
  }
  if (phase_ != Phase::kBehindStream || has_left_stream_) return {};
  has_left_stream_ = true;  // on_complete will find it so, and the session waits for that
  core.hold();
  return [&core, self = self_, status = wish_status(wish_, "stream")]() mutable {
    post_end(std::move(self), status);
    core.let_go();
  };
}

void AsyncRun::stop(RunHandle::State& handle, StopReason reason) {
  std::function<void()> end_early;
  {
    std::lock_guard lock(handle.mutex);
    AsyncRun* const run = handle.async_or_null;
    if (run == nullptr || run->wish_ != StopReason::kRunning) return;
    run->wish_ = reason;
    if (run->phase_ == Phase::kLaunched) return run->run_->stop(reason);
    end_early = run->leave_wait();
  }
  if (end_early) end_early();
}

void AsyncRun::take_turn(std::shared_ptr<AsyncRun> self) {
  AsyncRun& run = *self;
  Status status;
  bool has_turn = false;
  try {
    std::lock_guard lock(run.handle_->mutex);
    run.phase_ = Phase::kTurn;
    if (run.wish_ != StopReason::kRunning) {
      status = wish_status(run.wish_, "turn");
    } else {
      has_turn = run.core_.try_enter_or_queue(run.waiting(self), status);
    }
  } catch (const std::bad_alloc&) {
    status = no_memory();
  }
  if (has_turn) return launch(std::move(self));
  if (!status.is_ok()) post_end(std::move(self), std::move(status));
}

SessionCore::Waiting AsyncRun::waiting(const std::shared_ptr<AsyncRun>& self) {
  return {.run = &*run_,
          .start = [self]() mutable { launch(std::move(self)); },
          .give_up = [self](Status why) mutable { post_end(std::move(self), std::move(why)); }};
}

void AsyncRun::launch(std::shared_ptr<AsyncRun> self) {
  AsyncRun& run = *self;
  std::function<void()> on_done;
  try {
    on_done = [self]() mutable { end_launched(std::move(self)); };
    run.run_->take_state();
  } catch (const std::bad_alloc&) {  // its turn must go on to the next
    on_done = nullptr;
    return leave(std::move(self), no_memory());
  }
  {
    std::lock_guard lock(run.handle_->mutex);
    run.phase_ = Phase::kLaunched;
    // A wish that came before found no run to stop.
    if (run.wish_ != StopReason::kRunning) run.run_->stop(run.wish_);
  }
  self = nullptr;  // on_done has it, and ends before the session does
  run.run_->launch(false, run.deadline_, std::move(on_done));
}

void AsyncRun::end_launched(std::shared_ptr<AsyncRun> self) {
  SessionCore& core = self->core_;
  // The scheduler's thread is all host-driven loops'.
  if (!core.is_host_driven() || !self->run_->copies_outputs()) {
    return leave(std::move(self), Status::ok());
  }
  core.call_on_worker([self = std::move(self)]() mutable { leave(std::move(self), Status::ok()); });
}

void AsyncRun::leave(std::shared_ptr<AsyncRun> self, Status status) {
  SessionCore& core = self->core_;
  Run& run = *self->run_;
  if (self->gate_) {
    // What comes behind on the stream may write the inputs.
    if (status.is_ok() && run.has_made_outputs()) run.copy_given_outputs();
    self->gate_->open();
  }
  self->be_over();
  self->result_ = self->collect(std::move(status));
  core.begin_leaving(run, self->result_.is_ok());
  self->run_.reset();
  std::function<void()> start_next = core.give_turn_back();
  core.callbacks.post([self = std::move(self)] { self->end(); });
  // From here on the session may be gone, but for the next run's sake.
  if (start_next) core.start_run(std::move(start_next));
}

Result<NamedTensors> AsyncRun::collect(Status status) {
  if (status.is_ok()) status = run_->finish();
  if (!status.is_ok()) {
    run_->end_streams(status);
    return status;
  }
  if (!callback_) return NamedTensors();  // they have no reader
  return run_->collect_outputs();
}

void AsyncRun::be_over() {
  std::lock_guard lock(handle_->mutex);
  handle_->async_or_null = nullptr;
  phase_ = Phase::kOver;
}

void AsyncRun::post_end(std::shared_ptr<AsyncRun> self, Status status) {
  if (self->gate_) self->gate_->open();
  SessionCore& core = self->core_;
  if (self->run_) self->run_->end_streams(status);
  core.hold();
  self->be_over();
  self->result_ = std::move(status);
  core.callbacks.post([self = std::move(self)] { self->end(); });
}

void AsyncRun::end() {
  timer_.disarm();
  Status status = result_.status();
  {
    // What users have handed over goes as their callback is called: it may own the session.
    SessionScope scope(&core_, nullptr);
    call_back(core_, callback_, std::move(result_));
    callback_ = nullptr;
    run_.reset();
    inputs_.clear();
  }
  // Set before it was over. Its event is still calling us then.
  if (!has_left_stream_) front_.reset();
  core_.let_go();
  // From here on the session may be gone.
  {
    std::lock_guard lock(handle_->mutex);
    handle_->is_done = true;
    handle_->status = std::move(status);
  }
  handle_->changed.notify_all();  // without the lock, which is what who wakes takes first
}

// What a user's callback throws must not end the callback thread.
void AsyncRun::call_back(SessionCore& core, const RunCallback& callback,
                         Result<NamedTensors> result) {
  if (!callback) return;
  try {
    callback(std::move(result));
  } catch (const std::exception& error) {
    if (core.options.log) core.options.log(std::string("a run's callback threw: ") + error.what());
  } catch (...) {
    if (core.options.log) core.options.log("a run's callback threw something");
  }
}

RunHandle::RunHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}

bool RunHandle::wait_for(std::chrono::nanoseconds timeout) {
  const bool is_refused = SessionScope::may_not_wait_for(state_->session, state_->threads) ||
                          (state_->fork_guard != nullptr && state_->fork_guard->is_in_child());
  if (is_refused) return is_done();
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);
  const auto end = std::chrono::steady_clock::now() + std::min(timeout, kLongest);
  while (state_->polled_or_null != nullptr && !is_done() &&
         std::chrono::steady_clock::now() < end) {
    if (!state_->polled_or_null->poll()) std::this_thread::yield();
  }
  std::unique_lock lock(state_->mutex);
  if (state_->polled_or_null != nullptr) return state_->is_done;
  return state_->changed.wait_until(lock, end, [this] { return state_->is_done; });
}

Status RunHandle::wait() {
  if (state_->fork_guard->is_in_child()) return ForkGuard::error();
  if (SessionScope::may_not_wait_for(state_->session, state_->threads) && !is_done()) {
    return would_deadlock(
        "a host function or callback may not wait for a run of its own session, nor a host "
        "function for one of a session that shares its threads");
  }
  while (state_->polled_or_null != nullptr && !is_done()) {
    if (!state_->polled_or_null->poll()) std::this_thread::yield();
  }
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->is_done; });
  return state_->status;
}

bool RunHandle::is_done() const {
  if (state_->fork_guard->is_in_child()) return true;  // for this process
  std::lock_guard lock(state_->mutex);
  return state_->is_done;
}

void RunHandle::cancel() {
  if (!state_->fork_guard->is_in_child()) AsyncRun::stop(*state_, StopReason::kCancelled);
}

}  // namespace eddy
