#include "runtime/api/run_handle.h"

#include <optional>
#include <utility>

#include "runtime/api/run.h"
#include "runtime/api/session_core.h"
#include "runtime/api/session_scope.h"

namespace eddy {

// A run that owns what it was given, until its callback has returned.
struct RunHandle::State : RunEnd {
  explicit State(std::shared_ptr<SessionRuns> r) : runs(std::move(r)) {}

  // What users have handed over goes as their callback is called: it may own the session.
  void end(std::shared_ptr<RunEnd>& self, const Status& how) override;
  void left(const Status& how) override {
    status = how;
    done.set();
  }

  const std::shared_ptr<SessionRuns> runs;
  std::shared_ptr<CallbackQueue> callbacks;  // null where `run` is none
  std::optional<Run> run;                    // none: refused at once
  NamedTensors inputs;
  RunCallback callback;
  Status status;  // once it is done
  EndSignal done;
};

void RunHandle::State::end(std::shared_ptr<RunEnd>&, const Status& how) {
  const RunCallback called = std::exchange(callback, nullptr);
  const NamedTensors given = std::exchange(inputs, {});
  if (called) called(how.is_ok() ? run->take_outputs() : Result<NamedTensors>(how));
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
  ready = run.submit(options, run.values().give_inputs(state->inputs), stream_or_null, state);
  if (!ready.is_ok()) Run::call_back_refused(core, state, std::move(ready));
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
