// SessionCore: what a session and its runs share.
//
// Internal to runtime/api. Members are immutable once the session is made, unless said.
#pragma once

#include <condition_variable>
#include <deque>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/api/callback_thread.h"
#include "runtime/api/run.h"
#include "runtime/api/session.h"
#include "runtime/coroutine/scheduler.h"
#include "runtime/device/device.h"

namespace eddy {

struct SessionCore {
  SessionCore(const Library& l, SessionOptions o, Graph g)
      : library(l), options(std::move(o)), graph(std::move(g)) {}
  ~SessionCore();

  const Library& library;
  const SessionOptions options;
  const Graph graph;
  Plan plan;
  int64_t plan_ns = 0;
  std::vector<ValueDescription> inputs;
  std::vector<ValueDescription> outputs;
  bool has_one_strand = true;  // no region has more than one stream
  // Per output: made by a node of the root that nobody else reads, so that it can be made in the
  // caller's memory.
  std::vector<bool> is_placeable;

  // Every loop, how it is driven and why; iterations 0. By loop_nodes.
  std::vector<LoopReport> loops;
  std::vector<NodeId> loop_nodes;

  // Tensors handed to callers keep the device alive.
  std::shared_ptr<Device> device;
  std::unique_ptr<Program> program;

  // Made when first needed: host-driven loops and deadlines. Any thread.
  Scheduler& scheduler();

  // Runs in flight. A run enters before it launches and leaves when it is done.
  // Waits for its turn; kCancelled once closed, kDeadlineExceeded when it takes too long.
  Status enter(Run& run, std::optional<std::chrono::steady_clock::time_point> deadline);
  bool try_enter_or_queue(Run& run, std::function<void()> start, Status& status);
  void leave(Run& run);
  // leave() in two steps, for a run that must be gone before the session may go: between them
  // nobody reaches the run any more, but the session still waits.
  void begin_leaving(Run& run);
  void end_leaving();

  // Whoever waits moves the device on; elsewhere it moves by itself, or the scheduler polls it.
  bool do_waiters_poll() const {
    return device->needs_polling() && options.loops != Loops::kHost;
  }
  // Waits for `changed` until the predicate (asked under the lock) holds.
  template <typename Predicate>
  void wait_until_true(std::unique_lock<std::mutex>& lock, Predicate is_true) {
    while (do_waiters_poll() && !is_true()) {
      lock.unlock();
      const bool has_moved = device->poll();
      lock.lock();
      if (!has_moved && !is_true()) changed.wait_for(lock, std::chrono::microseconds(50));
    }
    changed.wait(lock, is_true);
  }

  std::mutex mutex;
  std::condition_variable changed;              // a run left, or close() was called
  std::vector<Run*> runs;                       // under the mutex; keeps its capacity
  std::deque<std::pair<Run*, std::function<void()>>> queued;  // under the mutex
  size_t num_leaving = 0;                       // under the mutex
  size_t num_behind_streams = 0;                // under the mutex; run_on, not yet in flight
  bool is_closed = false;                       // under the mutex
  // Under the mutex: nothing uses the session any more.
  bool is_idle() const {
    return runs.empty() && queued.empty() && num_behind_streams == 0 && num_leaving == 0;
  }
  bool has_turn() const {
    return options.max_runs_in_flight == 0 || runs.size() < options.max_runs_in_flight;
  }
  std::vector<LoopReport> last_loops;           // under the mutex

  std::once_flag scheduler_made;
  std::unique_ptr<Scheduler> scheduler_or_null;
  std::optional<PollerId> poller;  // of a polled device whose loops the host drives
  CallbackThread callbacks;  // last: ends first, while everything else is still there
};

}  // namespace eddy
