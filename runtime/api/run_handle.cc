#include "runtime/api/run_handle.h"

#include <optional>

#include "runtime/api/run.h"
#include "runtime/api/session_core.h"
#include "runtime/api/session_scope.h"

namespace eddy {

// A run that owns what it was given, until its callback has returned.
struct RunHandle::State {
  explicit State(std::shared_ptr<SessionRuns> r) : runs(std::move(r)) {}

  // On the callback thread: the run has ended, or was refused.
  void end(SessionCore& core, Status how);

  const std::shared_ptr<SessionRuns> runs;
  std::shared_ptr<CallbackQueue> callbacks;  // null where `run` is none
  std::optional<Run> run;                    // none: refused at once
  NamedTensors inputs;
  RunCallback callback;
  Status status;  // once it is done
  EndSignal done;
};

void RunHandle::State::end(SessionCore& core, Status how) {
  {
    // What users have handed over goes as their callback is called: it may own the session.
    const SessionScope scope(&core, nullptr);
    core.call_user([&] {
      if (callback) callback(how.is_ok() ? run->take_outputs() : Result<NamedTensors>(how));
    });
    callback = nullptr;
    inputs.clear();
  }
  core.runs->let_go();
  // From here on the session may be gone.
  status = std::move(how);
  done.set();
}

RunHandle::RunHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}

RunHandle RunHandle::submit(SessionCore& core, Stream* stream_or_null, NamedTensors inputs,
                            RunCallback callback, const RunOptions& options) {
  const auto state = std::make_shared<State>(core.runs);
  // In a forked child, without a callback thread, or where too many wait: it has ended at once, and
  // is called back on this thread.
  Status ready = core.is_in_child() ? ForkGuard::error() : core.prepare_threads({.callback = true});
  if (ready.is_ok()) ready = core.runs->may_submit();
  if (!ready.is_ok()) {
    for (const StreamedOutput& each : options.streams) {
      if (each.stream != nullptr) each.stream->end(ready);
    }
    core.call_user([&] {
      if (callback) callback(ready);
    });
    state->status = std::move(ready);
    return RunHandle(state);
  }
  state->done.clear();
  state->callbacks = core.callbacks.queue();
  state->inputs = std::move(inputs);
  state->callback = std::move(callback);
  Run& run = state->run.emplace(core, Run::Kind::kOnce, options.trace_or_null);
  run.collect_if(state->callback != nullptr);
  const auto end = [state, &core](Status how) { state->end(core, std::move(how)); };
  ready = run.submit(options, run.values().give_inputs(state->inputs), stream_or_null, {end, {}});
  if (!ready.is_ok()) {
    core.runs->hold();
    core.callbacks.post([end, ready] { end(ready); });
  }
  return RunHandle(state);
}

bool RunHandle::wait_for(std::chrono::nanoseconds timeout) {
  if (!state_->runs->check_wait(state_->done).is_ok()) return is_done();
  return state_->runs->wait(state_->done, false, deadline_in(timeout));
}

Status RunHandle::wait() {
  EDDY_RETURN_IF_ERROR(state_->runs->check_wait(state_->done));
  if (state_->run) {
    state_->run->help_before_callbacks();
    // The session may be gone, but not before the callback has returned.
    if (!state_->run->is_under_way()) state_->callbacks->help(state_->done);
  }
  state_->runs->wait(state_->done, false);
  return state_->status;
}

bool RunHandle::is_done() const {
  return state_->runs->is_in_child() || state_->done.is_set();  // a child's has ended for it
}

void RunHandle::cancel() { stop_run(*this, StopReason::kCancelled); }

void stop_run(const RunHandle& run, StopReason reason) {
  RunHandle::State& state = *run.state_;
  if (state.run && !state.runs->is_in_child()) state.run->stop(reason);
}

}  // namespace eddy
