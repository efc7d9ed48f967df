#include "runtime/api/call.h"

#include <atomic>
#include <new>

#include "runtime/api/run.h"
#include "runtime/api/session_core.h"
#include "runtime/api/session_scope.h"

namespace eddy {

struct Call::State {
  State(SessionCore& c, TraceRecorder* trace_or_null) : run(c, Run::Kind::kKept, trace_or_null) {}

  SessionCore& core() const { return run.core(); }
  Status check_at_rest() const {
    if (!run.is_under_way()) return Status::ok();
    if (core().is_in_child()) return ForkGuard::error();
    return invalid_argument(
        "a run of this Call is under way; wait() for it first, or prepare another Call");
  }
  Status check_place(const char* what, size_t index, size_t count) const {
    EDDY_RETURN_IF_ERROR(check_at_rest());
    if (index < count) return Status::ok();
    return invalid_argument(std::string("there is no ") + what + " " + std::to_string(index) +
                            "; the graph has " + std::to_string(count));
  }
  // Before an input is bound anew.
  Status check_input(size_t index) {
    is_checked = false;
    return check_place("input", index, core().inputs.size());
  }
  Status check_output(size_t index) const {
    return check_place("output", index, core().outputs.size());
  }
  Status check_bindings() {
    if (is_checked) return Status::ok();
    if (core().is_in_child()) return ForkGuard::error();
    Status status = run.values().check_symbols();
    is_checked = status.is_ok();
    return status;
  }
  bool has_outputs() const { return has_run && !run.is_under_way() && run.status().is_ok(); }
  bool has_output(size_t index) const { return index < core().outputs.size() && has_outputs(); }

  Run run;
  bool is_checked = false;
  std::atomic<bool> has_run{false};  // a thread that waits may ask beside; orders nothing
};

Call::Call(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Call>> Call::prepare(SessionCore& core, TraceRecorder* trace_or_null) try {
  if (core.is_in_child()) return ForkGuard::error();
  return std::unique_ptr<Call>(new Call(std::make_unique<State>(core, trace_or_null)));
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory to prepare a run");
}

Call::~Call() {
  SessionCore& core = state_->core();
  if (core.is_in_child()) {
    [[maybe_unused]] const State* left_alone = state_.release();
    return;
  }
  Run& run = state_->run;
  if (!run.is_under_way()) return;
  run.stop(StopReason::kCancelled);
  // What has been cancelled ends without the callback thread.
  const bool may_wait =
      core.callbacks.is_here() || !SessionScope::may_not_wait_for(&core, core.threads.get());
  std::shared_ptr<void> owner(std::move(state_));
  if (!may_wait && run.leave_to(owner)) return;
  run.wait();
}

Status Call::bind_input(size_t index, const TensorView& view) {
  EDDY_RETURN_IF_ERROR(state_->check_input(index));
  return state_->run.values().bind_tensor(index, view);
}

Status Call::bind_input(size_t index, const Tensor& value) {
  EDDY_RETURN_IF_ERROR(state_->check_input(index));
  return state_->run.values().bind_input(index, value);
}

Status Call::bind_device_output(size_t index, const TensorView& view) {
  EDDY_RETURN_IF_ERROR(state_->check_output(index));
  return state_->run.values().bind_device_output(index, view);
}

Status Call::bind_output(size_t index, const TensorView& view) {
  EDDY_RETURN_IF_ERROR(state_->check_output(index));
  return state_->run.values().bind_output(index, view);
}

Status Call::bind_output(size_t index, const TensorView& view, const TensorView& spare) {
  EDDY_RETURN_IF_ERROR(state_->check_output(index));
  return state_->run.values().bind_output(index, view, &spare);
}

Status Call::run(const RunOptions& options) {
  EDDY_RETURN_IF_ERROR(state_->check_at_rest());
  state_->has_run.store(true, std::memory_order_relaxed);
  return state_->run.run(options, state_->check_bindings());
}

namespace {

class CallbackEnd : public RunEnd {
 public:
  explicit CallbackEnd(Call::Callback callback) : callback_(std::move(callback)) {}
  void end(std::shared_ptr<RunEnd>& self, const Status& status) override {
    const std::shared_ptr<RunEnd> gone = std::move(self);  // the callback may own the session
    callback_(status);
  }

 private:
  const Call::Callback callback_;
};

std::shared_ptr<RunEnd> end_of(Call::Callback callback) {
  if (!callback) return nullptr;
  return std::make_shared<CallbackEnd>(std::move(callback));
}

}  // namespace

Status Call::submit(const RunOptions& options, Callback callback,
                    const std::function<void()>& begun) {
  return submit_to(nullptr, options, end_of(std::move(callback)), begun);
}

Status Call::submit(const RunOptions& options, std::shared_ptr<RunEnd> end,
                    const std::function<void()>& begun) {
  return submit_to(nullptr, options, std::move(end), begun);
}

Status Call::submit_on(Stream& stream, const RunOptions& options, Callback callback,
                       const std::function<void()>& begun) {
  return submit_to(&stream, options, end_of(std::move(callback)), begun);
}

Status Call::submit_on(Stream& stream, const RunOptions& options, std::shared_ptr<RunEnd> end,
                       const std::function<void()>& begun) {
  return submit_to(&stream, options, std::move(end), begun);
}

Status Call::submit_to(Stream* stream_or_null, const RunOptions& options,
                       std::shared_ptr<RunEnd> end_or_null, const std::function<void()>& begun) {
  EDDY_RETURN_IF_ERROR(state_->check_at_rest());
  state_->has_run.store(true, std::memory_order_relaxed);
  return state_->run.submit(options, state_->check_bindings(), stream_or_null,
                            std::move(end_or_null), begun);
}

Status Call::wait() {
  EDDY_RETURN_IF_ERROR(state_->run.check_wait());
  state_->run.help();
  state_->run.wait();
  if (!state_->has_run) return invalid_argument("no run was submitted yet");
  return state_->run.status();
}

bool Call::wait_for(std::chrono::nanoseconds timeout) {
  if (!state_->run.check_wait().is_ok()) return is_done();
  return state_->run.wait(deadline_in(timeout));
}

Status Call::check_wait() const { return state_->run.check_wait(); }

Status Call::check_wait_for_next() const { return state_->core().runs->check_wait(); }

bool Call::is_done() const { return state_->core().is_in_child() || !state_->run.is_under_way(); }

bool Call::has_run() const { return state_->has_run; }

bool Call::is_overdue() const { return state_->run.owes(); }

void Call::cancel() {
  if (!state_->core().is_in_child()) state_->run.stop(StopReason::kCancelled);
}

TensorView Call::output(size_t index) const {
  return state_->has_output(index) ? state_->run.values().output(index) : TensorView();
}

Tensor Call::value(size_t index) const {
  return state_->has_output(index) ? state_->run.values().collect_output(index) : Tensor();
}

size_t Call::copied_bytes() const {
  return state_->has_outputs() ? state_->run.values().copied_bytes() : 0;
}

}  // namespace eddy
