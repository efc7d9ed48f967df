#include "runtime/api/session.h"

#include <new>
#include <numeric>
#include <system_error>

#include "graph/differentiate/expand_gradients.h"
#include "graph/io/import.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/api/make_session_core.h"
#include "runtime/api/plan_file.h"
#include "runtime/api/program_fingerprint.h"
#include "runtime/api/run.h"
#include "runtime/api/saved_plan.h"
#include "runtime/api/session_core.h"
#include "runtime/api/session_scope.h"
#include "runtime/device/no_thread.h"
#include "runtime/net/rank_session.h"

namespace eddy {

Session::Session(std::unique_ptr<SessionCore> core) : core_(std::move(core)) {
  if (core_->do_waiters_poll()) core_->runs->set_polled(core_->devices[0].device);
}

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

// What `make` returns for the options, whose hooks throw nothing.
template <typename Make>
Result<std::unique_ptr<SessionCore>> guarded_core(const SessionOptions& options, const Make& make) {
  SessionOptions own = options;
  own.check = guarded("check", own.check);
  own.make_device = not_null("make_device", guarded("make_device", own.make_device));
  for (MakeDevice& device : own.make_devices) {
    device = not_null("make_devices", guarded("make_devices", device));
  }
  try {
    return make(own);
  } catch (const std::system_error& error) {
    return no_thread(error);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to make the session");
  }
}

// Nodes Gradient become what computes them.
Result<Graph> with_gradients(const Library& library, Graph graph) {
  if (!has_gradient_nodes(graph)) return graph;
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  return expand_gradients(std::move(graph), library.ops(), rules);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(const Library& library, Graph graph,
                                                 const SessionOptions& options) {
  Fingerprint given;
  try {
    given = graph_fingerprint(graph, [&graph, &options] {
      if (options.release_constants) graph.release_constants({});
    });
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to read the graph's constants");
  }
  return create(library, std::move(graph), given, options);
}

Result<std::unique_ptr<Session>> Session::create(const Library& library, Graph graph,
                                                 const Fingerprint& given,
                                                 const SessionOptions& options) {
  EDDY_ASSIGN_OR_RETURN(
      std::unique_ptr<SessionCore> core,
      guarded_core(options, [&](const SessionOptions& own) -> Result<std::unique_ptr<SessionCore>> {
        Result<Graph> whole = with_gradients(library, std::move(graph));
        if (!whole.is_ok()) {
          // The other ranks wait for it.
          if (own.ranks.world) RankSession::create(own.ranks)->refuse(whole.status());
          return whole.take_status();
        }
        return make_session_core(library, std::move(*whole), given, own);
      }));
  return std::unique_ptr<Session>(new Session(std::move(core)));
}

Result<std::unique_ptr<Session>> Session::load(const Library& library, const std::string& path,
                                               const SessionOptions& options) {
  if (is_plan_file(path)) {
    EDDY_ASSIGN_OR_RETURN(std::unique_ptr<SessionCore> core,
                          guarded_core(options, [&](const SessionOptions& own) {
                            return load_plan_core(library, path, own);
                          }));
    return std::unique_ptr<Session>(new Session(std::move(core)));
  }
  ImportOptions import_options;
  import_options.warn = options.log;
  Result<Graph> graph = import_onnx(path, library.ops(), import_options);
  if (graph.is_ok()) return create(library, std::move(*graph), options);
  // The other ranks wait for it.
  if (options.ranks.world) RankSession::create(options.ranks)->refuse(graph.status());
  return graph.take_status();
}

Result<std::unique_ptr<Session>> Session::load_bytes(const Library& library,
                                                     std::span<const std::byte> bytes,
                                                     const SessionOptions& options) {
  if (is_plan_bytes(bytes)) {
    EDDY_ASSIGN_OR_RETURN(std::unique_ptr<SessionCore> core,
                          guarded_core(options, [&](const SessionOptions& own) {
                            return load_plan_core(library, bytes, own);
                          }));
    return std::unique_ptr<Session>(new Session(std::move(core)));
  }
  ImportOptions import_options;
  import_options.warn = options.log;
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_onnx_bytes(bytes, library.ops(), import_options));
  return create(library, std::move(graph), options);
}

Result<Graph> Session::graph_to_run(const Library& library, Graph graph,
                                    const SessionOptions& options) {
  SessionOptions own = options;
  own.check = guarded("check", own.check);
  try {
    EDDY_ASSIGN_OR_RETURN(graph, with_gradients(library, std::move(graph)));
    return make_graph_to_run(library, std::move(graph), own);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to simplify the graph");
  }
}

Session::~Session() {
  if (core_->is_in_child()) {
    // Its threads are not here to be joined, and its locks may be taken for ever.
    [[maybe_unused]] const SessionCore* left_alone = core_.release();
    return;
  }
  SessionRuns& runs = *core_->runs;
  const bool may_wait = !SessionScope::may_not_wait_for(core_.get(), core_->threads.get());
  const bool is_of_another = !may_wait && !SessionScope::is_inside(core_.get());
  if (core_->callbacks.is_here() || (is_of_another && !runs.is_idle())) {
    // It ends with its last run, on its callback thread: all others belong to threads that the
    // session may own.
    SessionCore* const core = core_.release();
    runs.orphan([core] {
      if (core->callbacks.is_here()) {
        delete core;
      } else {
        core->callbacks.post([core] { delete core; });
      }
    });
    return;
  }
  EDDY_CHECK(!SessionScope::is_inside(core_.get()) && (may_wait || runs.is_idle()))
      << "a session is destroyed inside a host function that its runs wait for, so it would wait "
         "for ever; close() it there, and destroy it on another thread or in a callback";
  runs.wait_until_idle();
}

const std::vector<ValueDescription>& Session::inputs() const { return core_->inputs; }
const std::vector<ValueDescription>& Session::outputs() const { return core_->outputs; }
const Graph& Session::graph() const { return core_->graph(); }
const Plan& Session::plan() const { return core_->plan(); }
MemoryStatistics Session::memory() const { return core_->host().allocator().statistics(); }
const std::string& Session::fingerprint() const { return core_->fingerprint; }
size_t Session::workspace_bytes() const {
  const std::vector<size_t>& sizes = core_->executable->workspaces();
  return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
}
int Session::num_workers() const { return core_->host().num_workers(); }
int64_t Session::plan_ns() const { return core_->plan_ns; }

namespace {

// Afterwards the session may be gone.
Status run_here(Run& run, const RunOptions& options, Status given) {
  Status status = run.run(options, std::move(given));
  for (const StreamedOutput& each : options.streams) {
    if (each.stream != nullptr) each.stream->wait_delivered();
  }
  return status;
}

Status check_places(std::span<const size_t> places, size_t count, const char* what) {
  for (const size_t place : places) {
    if (place < count) continue;
    return invalid_argument(std::string("there is no ") + what + " " + std::to_string(place) +
                            "; the graph has " + std::to_string(count));
  }
  return Status::ok();
}

}  // namespace

Result<NamedTensors> Session::run(const NamedTensors& inputs, const RunOptions& options) {
  if (core_->is_in_child()) return ForkGuard::error();
  Run run(*core_, Run::Kind::kOnce, options.trace_or_null);
  EDDY_RETURN_IF_ERROR(run_here(run, options, run.values().give_inputs(inputs)));
  return run.take_outputs();
}

Status Session::run_at(std::span<const Given> inputs, std::span<const size_t> wanted,
                       std::span<Tensor> into, const RunOptions& options) {
  EDDY_CHECK(wanted.size() == into.size())
      << wanted.size() << " outputs have " << into.size() << " places";
  if (core_->is_in_child()) return ForkGuard::error();
  EDDY_RETURN_IF_ERROR(check_places(wanted, core_->outputs.size(), "output"));
  Run run(*core_, Run::Kind::kOnce, options.trace_or_null);
  run.collect_to(wanted, into);
  Status given;
  for (size_t i = 0; i < inputs.size() && given.is_ok(); ++i) {
    given = check_places({&inputs[i].input, 1}, core_->inputs.size(), "input");
    if (given.is_ok()) given = run.values().give_input(inputs[i].input, *inputs[i].value);
  }
  if (given.is_ok()) given = run.values().check_symbols();
  return run_here(run, options, std::move(given));
}

Result<size_t> Session::find_input(std::string_view name) const { return core_->find_input(name); }

RunHandle Session::run_async(NamedTensors inputs, RunCallback callback, const RunOptions& options) {
  return RunHandle::submit(*core_, nullptr, std::move(inputs), std::move(callback), options);
}

RunHandle Session::run_on(Stream& stream, NamedTensors inputs, RunCallback callback,
                          const RunOptions& options) {
  return RunHandle::submit(*core_, &stream, std::move(inputs), std::move(callback), options);
}

Result<std::unique_ptr<Call>> Session::prepare(TraceRecorder* trace_or_null) {
  return Call::prepare(*core_, trace_or_null);
}

Result<std::unique_ptr<Stream>> Session::create_stream() {
  if (core_->is_in_child()) return ForkGuard::error();
  return core_->stream_device().create_stream();
}

Result<std::unique_ptr<Stream>> Session::adopt_stream(void* native_stream) {
  if (core_->is_in_child()) return ForkGuard::error();
  return core_->stream_device().adopt_stream(native_stream);
}

void Session::cancel_all() {
  if (!core_->is_in_child()) Run::stop_all(*core_, false);
}

void Session::close() {
  if (core_->is_in_child()) return;
  Run::stop_all(*core_, true);
  // The run that calls this could never end.
  if (SessionScope::may_not_wait_for(core_.get(), core_->threads.get())) return;
  core_->runs->wait_until_overdue();
}

void Session::trim() {
  if (core_->is_in_child()) return;
  core_->run_pool->trim();
  for (const ExecutionDevice& each : core_->devices) each.device->allocator().trim();
}

std::string Session::placement_text() const { return core_->placement; }

std::string Session::describe_runs() const {
  if (core_->is_in_child()) return ForkGuard::error().message() + "\n";
  return core_->runs->describe();
}

RunCounts Session::run_counts() const {
  return core_->is_in_child() ? RunCounts() : core_->runs->counts();
}

std::vector<LoopReport> Session::loop_reports() const {
  return core_->is_in_child() ? core_->loop_reports.planned() : core_->loop_reports.last();
}

uint64_t Session::num_iterations() const { return core_->loop_reports.num_iterations(); }

std::vector<OperatorTime> Session::operator_times() const {
  std::vector<OperatorTime> times;
  if (core_->operator_times_or_null == nullptr) return times;
  const OperatorTimes& of = *core_->operator_times_or_null;
  for (const OperatorTimes::Cell& cell : of.cells()) {
    times.push_back(
        {cell.name.c_str(), cell.num_calls.load(std::memory_order_relaxed), of.time_ns(cell)});
  }
  return times;
}

const std::vector<LoopReport>& Session::branch_reports() const { return core_->branches; }

}  // namespace eddy
