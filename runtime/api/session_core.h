// SessionCore: what a session and its runs share.
//
// Internal to runtime/api. Members are immutable once the session is made, unless said.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/api/callback_thread.h"
#include "runtime/api/fork_guard.h"
#include "runtime/api/library.h"
#include "runtime/api/loop_reports.h"
#include "runtime/api/session_options.h"
#include "runtime/api/session_report.h"
#include "runtime/api/session_runs.h"
#include "runtime/api/shared_programs.h"
#include "runtime/api/shared_threads.h"
#include "runtime/coroutine/scheduler.h"
#include "runtime/device/execution_device.h"
#include "runtime/execute/runs/operator_times.h"

namespace eddy {

class RankSession;

struct SessionCore {
  SessionCore(const Library& l, SessionOptions o) : SessionCore(l, threads_of(o), std::move(o)) {}
  ~SessionCore();

  const Library& library;
  const SessionOptions options;
  // Other sessions may run it too; replaced while the session is made.
  std::shared_ptr<const CompiledProgram> program;
  const Graph& graph() const { return program->graph; }
  const Plan& plan() const { return program->plan; }
  int64_t plan_ns = 0;
  std::vector<ValueDescription> inputs;
  std::vector<ValueDescription> outputs;
  std::unordered_map<std::string_view, size_t> input_places;  // by name; views of `inputs`
  Result<size_t> find_input(std::string_view name) const;
  // By input, beside other devices: a node that reads it on the host; empty: it is copied only.
  std::vector<std::string> host_readers;
  bool has_one_strand = true;  // no region has more than one stream

  // Of its threads. Asked before any lock is taken. Handles keep it.
  const std::shared_ptr<const ForkGuard> fork_guard;
  bool is_in_child() const { return fork_guard->is_in_child(); }

  LoopReports loop_reports;
  std::vector<LoopReport> branches;

  // The host's first, the others as the options list them. Tensors handed to callers keep them
  // alive.
  std::vector<ExecutionDevice> devices;
  Device& host() const { return *devices[0].device; }
  bool has_one_device() const { return devices.size() == 1; }
  std::shared_ptr<const void> keep_alive() const {
    if (has_one_device()) return devices[0].device;
    return std::make_shared<std::vector<ExecutionDevice>>(devices);
  }
  // That a caller's stream is of.
  Device& stream_device() const { return *devices[has_one_device() ? 0 : 1].device; }
  std::string placement;  // as text

  bool is_host_driven() const { return options.loops == Loops::kHost || !has_one_device(); }
  // Submitted runs begin on the host's workers; else where the runner says.
  bool starts_on_workers() const {
    return !is_host_driven() && !host().needs_polling() && host().workers_or_null() != nullptr;
  }
  // With those of the other ranks; null: the options have no world. The scheduler polls it.
  std::shared_ptr<RankSession> ranks;
  void poll_ranks();
  // What a node communicates, whose shape the graph's inputs decide, and which is to be equal on
  // all ranks.
  struct SharedShape {
    struct Dim {
      int64_t size = 0;  // or, where below 0, that of an input's axis
      size_t input = 0;
      int axis = 0;
    };
    std::string node;
    std::vector<Dim> dims;
  };
  std::vector<SharedShape> shared_shapes;
  std::unique_ptr<OperatorTimes> operator_times_or_null;  // of the program's graph
  std::unique_ptr<Executable> executable;
  std::unique_ptr<RunPool> run_pool;

  std::string fingerprint;

  std::shared_ptr<SharedThreads> threads;  // goes before the program where it is not shared
  // Made when first needed: host-driven loops and deadlines. Any thread.
  Scheduler& scheduler() const { return threads->scheduler(); }

  // Which runs are under way; outlives the session where handles of runs do.
  const std::shared_ptr<SessionRuns> runs;
  // On a worker, where the device has workers, which the run has prepared; else here. Afterwards
  // the session may be gone.
  void call_on_worker(std::function<void()> function);

  // What users' functions throw must not end the thread that calls them.
  template <typename Function>
  void call_user(const Function& function) const try {
    function();
  } catch (const std::exception& error) {
    log_thrown(error.what());
  } catch (...) {
    log_thrown(nullptr);
  }
  void log_thrown(const char* what_or_null) const;

  // Threads that a run will need and that may not have been made yet.
  struct Needs {
    bool callback = false;
    bool timer = false;    // the scheduler's
    bool workers = false;  // of a device that is not polled
  };
  // kResourceExhausted where the system has no thread for one of them.
  Status prepare_threads(const Needs& needs);
  // Waiting threads move the device on; elsewhere it moves by itself, or the scheduler polls it.
  bool do_waiters_poll() const { return host().needs_polling() && !is_host_driven(); }
  // Work for a device could not be recorded and is issued node by node.
  void note_refusal(const Status& why);
  // Logs what devices beside the host's do without, as far as it has not been logged yet.
  void tell_notices();

  std::mutex notices_mutex;
  std::vector<size_t> num_notices_told;  // under the mutex; by device

  std::optional<PollerId> ranks_poller;
  std::vector<Device*> polled_devices;  // by the scheduler; those whose loops the host drives
  SessionCallbacks callbacks;           // last: ends first, while everything else is still there

 private:
  SessionCore(const Library& l, std::shared_ptr<SharedThreads> t, SessionOptions&& o)
      : library(l),
        options(std::move(o)),
        fork_guard(t->fork_guard()),
        threads(std::move(t)),
        runs(make_runs()),
        callbacks(threads->callback_threads()) {}
  std::shared_ptr<SessionRuns> make_runs() const;
  static std::shared_ptr<SharedThreads> threads_of(const SessionOptions& options) {
    return options.threads ? options.threads : std::make_shared<SharedThreads>(options.num_threads);
  }
};

}  // namespace eddy
