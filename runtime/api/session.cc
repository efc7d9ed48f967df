#include "runtime/api/session.h"

#include <new>
#include <numeric>
#include <system_error>

#include "graph/io/import.h"
#include "runtime/api/async_run.h"
#include "runtime/api/make_session_core.h"
#include "runtime/api/session_core.h"
#include "runtime/api/session_scope.h"
#include "runtime/device/no_thread.h"

namespace eddy {

struct Call::State {
  State(SessionCore& c, TraceRecorder* trace_or_null) : core(c), run(c, trace_or_null) {
    run.take_state();
  }

  // Before an input is bound anew.
  Status check_input(size_t index) {
    is_checked = false;
    return check_place("input", index, core.inputs.size());
  }
  Status check_output(size_t index) const {
    return check_place("output", index, core.outputs.size());
  }
  static Status check_place(const char* what, size_t index, size_t count) {
    if (index < count) return Status::ok();
    return invalid_argument(std::string("there is no ") + what + " " + std::to_string(index) +
                            "; the graph has " + std::to_string(count));
  }

  SessionCore& core;
  Run run;
  bool is_checked = false;
};

Session::Session(std::unique_ptr<SessionCore> core) : core_(std::move(core)) {}

namespace {

// The caller's function, which may be none, as one that throws nothing.
template <typename T>
std::function<T()> guarded(const char* name, std::function<T()> hook) {
  if (!hook) return hook;
  return [name = std::string(name), hook = std::move(hook)]() -> T {
    try {
      return hook();
    } catch (const std::system_error& error) {
      // Devices have threads.
      if (error.code() == std::errc::resource_unavailable_try_again) return no_thread(error);
      return run_failed(name + " threw: " + error.what());
    } catch (const std::exception& error) {
      return run_failed(name + " threw: " + error.what());
    } catch (...) {
      return run_failed(name + " threw something");
    }
  };
}

bool is_nothing(const std::shared_ptr<Device>& made) { return made == nullptr; }
bool is_nothing(const ExecutionDevice& made) {
  return made.device == nullptr || made.kernels == nullptr;
}

template <typename T>
std::function<Result<T>()> not_null(const char* name, std::function<Result<T>()> hook) {
  if (!hook) return hook;
  return [name = std::string(name), hook = std::move(hook)]() -> Result<T> {
    Result<T> made = hook();
    if (made.is_ok() && is_nothing(*made)) return invalid_argument(name + " made nothing");
    return made;
  };
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(const Library& library, Graph graph,
                                                 const SessionOptions& options) {
  SessionOptions own = options;
  own.check = guarded("check", own.check);
  own.make_device = not_null("make_device", guarded("make_device", own.make_device));
  for (MakeDevice& make : own.make_devices) {
    make = not_null("make_devices", guarded("make_devices", make));
  }
  try {
    EDDY_ASSIGN_OR_RETURN(std::unique_ptr<SessionCore> core,
                          make_session_core(library, std::move(graph), own));
    return std::unique_ptr<Session>(new Session(std::move(core)));
  } catch (const std::system_error& error) {
    return no_thread(error);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to make the session");
  }
}

Result<std::unique_ptr<Session>> Session::load(const Library& library, const std::string& path,
                                               const SessionOptions& options) {
  ImportOptions import_options;
  import_options.warn = options.log;
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_onnx(path, library.ops(), import_options));
  return create(library, std::move(graph), options);
}

Session::~Session() {
  if (core_->is_in_child()) {
    // Its threads are not here to be joined, and its locks may be taken for ever.
    [[maybe_unused]] const SessionCore* left_alone = core_.release();
    return;
  }
  if (core_->callbacks.is_here()) {
    core_.release()->orphan();
    return;
  }
  std::unique_lock lock(core_->mutex);
  const bool may_wait = !SessionScope::may_not_wait_for(core_.get(), core_->threads.get());
  EDDY_CHECK(!SessionScope::is_inside(core_.get()) && (may_wait || core_->is_idle()))
      << "a session is destroyed inside a host function that its runs wait for, so it would wait "
         "for ever; close() it there, and destroy it on another thread or in a callback";
  core_->wait_until_idle(lock);
}

const std::vector<ValueDescription>& Session::inputs() const { return core_->inputs; }
const std::vector<ValueDescription>& Session::outputs() const { return core_->outputs; }
const Graph& Session::graph() const { return core_->graph; }
const Plan& Session::plan() const { return core_->plan; }
MemoryStatistics Session::memory() const { return core_->host().allocator().statistics(); }
const std::string& Session::fingerprint() const { return core_->fingerprint; }
size_t Session::workspace_bytes() const {
  const std::vector<size_t>& sizes = core_->executable->workspaces();
  return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
}
int Session::num_workers() const { return core_->host().num_workers(); }
int64_t Session::plan_ns() const { return core_->plan_ns; }

namespace {

// The turn of a run that its own thread waits for, until it is over.
class Turn {
 public:
  // Of a run that has entered. A Call keeps its state; else it goes before the turn does.
  Turn(SessionCore& core, Run& run) : core_(core), run_(run), keeps_state_(run.has_state()) {}
  ~Turn() {
    const bool with_report = run_.has_state() && run_.has_made_outputs();
    if (keeps_state_) {
      core_.leave(run_, with_report);
    } else {
      core_.begin_leaving(run_, with_report);
      if (run_.has_state()) run_.drop_state();
      core_.end_leaving();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  SessionCore& core_;
  Run& run_;
  const bool keeps_state_;
};

// Enters, runs on this thread or the workers, waits, collects, leaves: then the session may be
// gone.
Status run_to_end(SessionCore& core, Run& run, const RunOptions& options,
                  Result<NamedTensors>* outputs_or_null = nullptr) try {
  if (core.is_in_child()) return ForkGuard::error();
  if (SessionScope::may_not_wait_for(&core, core.threads.get())) {
    return would_deadlock(
        "a host function or callback may not wait for a run of its own session, nor a host "
        "function for one of a session that shares its threads; use run_async");
  }
  const SessionCore::Deadline deadline = deadline_of(options);
  run.forget_stop();
  EDDY_RETURN_IF_ERROR(core.enter(run, deadline));
  const Turn turn(core, run);
  if (!run.has_state()) run.take_state();
  const bool on_this_thread = core.has_one_strand && !core.is_host_driven();
  EDDY_RETURN_IF_ERROR(core.prepare_threads({.callback = !options.streams.empty(),
                                             .timer = deadline.has_value(),
                                             .workers = !on_this_thread}));
  if (deadline) run.arm_deadline(*deadline);
  run.launch(on_this_thread, deadline, {});
  run.wait();
  EDDY_RETURN_IF_ERROR(run.finish());
  if (outputs_or_null != nullptr) *outputs_or_null = run.collect_outputs();
  return Status::ok();
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for what a run needs");
}

}  // namespace

Result<NamedTensors> Session::run(const NamedTensors& inputs, const RunOptions& options) {
  if (core_->is_in_child()) return ForkGuard::error();
  Run run(*core_, options.trace_or_null);
  Result<NamedTensors> outputs = NamedTensors();
  Status status = run.give_streams(options.streams);
  if (status.is_ok()) status = run.give_inputs(inputs);
  if (status.is_ok()) status = run_to_end(*core_, run, options, &outputs);
  if (!status.is_ok()) run.end_streams(status);
  for (const StreamedOutput& each : options.streams) {
    if (each.stream != nullptr) each.stream->wait_delivered();
  }
  if (!status.is_ok()) return status;
  return outputs;
}

Result<std::unique_ptr<Call>> Session::prepare(TraceRecorder* trace_or_null) {
  if (core_->is_in_child()) return ForkGuard::error();
  return std::unique_ptr<Call>(new Call(std::make_unique<Call::State>(*core_, trace_or_null)));
}

RunHandle Session::run_async(NamedTensors inputs, RunCallback callback, const RunOptions& options) {
  return AsyncRun::submit(*core_, nullptr, std::move(inputs), std::move(callback), options);
}

Result<std::unique_ptr<Stream>> Session::create_stream() {
  if (core_->is_in_child()) return ForkGuard::error();
  return core_->stream_device().create_stream();
}

Result<std::unique_ptr<Stream>> Session::adopt_stream(void* native_stream) {
  if (core_->is_in_child()) return ForkGuard::error();
  return core_->stream_device().adopt_stream(native_stream);
}

RunHandle Session::run_on(Stream& stream, NamedTensors inputs, RunCallback callback,
                          const RunOptions& options) {
  return AsyncRun::submit(*core_, &stream, std::move(inputs), std::move(callback), options);
}

void Session::cancel_all() {
  if (!core_->is_in_child()) core_->cancel_all(false);
}

void Session::close() {
  if (core_->is_in_child()) return;
  core_->cancel_all(true);
  // The run that calls this could never end.
  if (SessionScope::may_not_wait_for(core_.get(), core_->threads.get())) return;
  std::unique_lock lock(core_->mutex);
  core_->wait_until_idle(lock);
}

void Session::trim() {
  if (core_->is_in_child()) return;
  core_->executable->trim();
  for (const ExecutionDevice& each : core_->devices) each.device->allocator().trim();
}

std::string Session::placement_text() const { return core_->placement; }

std::string Session::describe_runs() const {
  if (core_->is_in_child()) return ForkGuard::error().message() + "\n";
  std::lock_guard lock(core_->mutex);
  std::string text = std::to_string(core_->runs.size()) + " run(s) in flight, " +
                     std::to_string(core_->queue.size()) + " waiting for their turn\n";
  size_t number = 0;
  for (const Run* run : core_->runs) {
    text += "run " + std::to_string(number++) + ":\n" + run->describe();
  }
  return text;
}

std::vector<LoopReport> Session::loop_reports() const {
  if (core_->is_in_child()) return core_->loops;
  std::lock_guard lock(core_->mutex);
  return core_->last_loops;
}

const std::vector<LoopReport>& Session::branch_reports() const { return core_->branches; }

Call::Call(std::unique_ptr<State> state) : state_(std::move(state)) {}
Call::~Call() {
  if (state_->core.is_in_child()) [[maybe_unused]]
    const State* left_alone = state_.release();
}

Status Call::bind_input(size_t index, const TensorView& view) {
  EDDY_RETURN_IF_ERROR(state_->check_input(index));
  return state_->run.bind_tensor(index, view);
}

Status Call::bind_input(size_t index, const Tensor& value) {
  EDDY_RETURN_IF_ERROR(state_->check_input(index));
  return state_->run.bind_input(index, value);
}

Status Call::bind_device_output(size_t index, const TensorView& view) {
  EDDY_RETURN_IF_ERROR(state_->check_output(index));
  return state_->run.bind_device_output(index, view);
}

Status Call::bind_output(size_t index, const TensorView& view) {
  EDDY_RETURN_IF_ERROR(state_->check_output(index));
  return state_->run.bind_output(index, view);
}

Status Call::bind_output(size_t index, const TensorView& view, const TensorView& spare) {
  EDDY_RETURN_IF_ERROR(state_->check_output(index));
  return state_->run.bind_output(index, view, &spare);
}

Status Call::run(const RunOptions& options) {
  if (!options.streams.empty()) {
    return invalid_argument("a Call streams no outputs; use run or run_async");
  }
  if (state_->core.is_in_child()) return ForkGuard::error();
  if (!state_->is_checked) {
    EDDY_RETURN_IF_ERROR(state_->run.check_symbols());
    state_->is_checked = true;
  }
  return run_to_end(state_->core, state_->run, options);
}

TensorView Call::output(size_t index) const {
  EDDY_CHECK(index < state_->core.outputs.size()) << "there is no output " << index;
  return state_->run.output(index);
}

Tensor Call::value(size_t index) const {
  EDDY_CHECK(index < state_->core.outputs.size()) << "there is no output " << index;
  return state_->run.collect_output(index);
}

size_t Call::copied_bytes() const { return state_->run.copied_bytes(); }

}  // namespace eddy
