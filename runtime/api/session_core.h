// SessionCore: what a session and its runs share.
//
// Internal to runtime/api. Members are immutable once the session is made, unless said.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/api/callback_thread.h"
#include "runtime/api/fork_guard.h"
#include "runtime/api/run.h"
#include "runtime/api/session.h"
#include "runtime/api/shared_threads.h"
#include "runtime/coroutine/scheduler.h"
#include "runtime/device/execution_device.h"

namespace eddy {

struct SessionCore {
  SessionCore(const Library& l, SessionOptions o, Graph g)
      : SessionCore(l, threads_of(o), std::move(o), std::move(g)) {}
  ~SessionCore();

  const Library& library;
  const SessionOptions options;
  // Some 20 µs. To spin for another thread helps only where that one can run meanwhile.
  const int num_wait_spins;
  Graph graph;  // constants that kernels have packed have let go of their bytes
  Plan plan;
  int64_t plan_ns = 0;
  std::vector<ValueDescription> inputs;
  std::vector<ValueDescription> outputs;
  std::unordered_map<std::string_view, size_t> input_places;  // by name; views of `inputs`
  // By input, beside other devices: a node that reads it on the host; empty: it is copied only.
  std::vector<std::string> host_readers;
  bool has_one_strand = true;  // no region has more than one stream

  // Of its threads. Asked before any lock is taken. Handles keep it.
  const std::shared_ptr<const ForkGuard> fork_guard;
  bool is_in_child() const { return fork_guard->is_in_child(); }

  // Every loop, how it is driven and why; iterations 0. By loop_nodes.
  std::vector<LoopReport> loops;
  std::vector<LoopReport> branches;
  std::vector<NodeId> loop_nodes;

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
  std::unique_ptr<Executable> executable;

  std::string fingerprint;

  std::shared_ptr<SharedThreads> threads;  // goes before the program where nobody shares it
  // Made when first needed: host-driven loops and deadlines. Any thread.
  Scheduler& scheduler() const { return threads->scheduler(); }

  // Turns. A run enters before it launches and leaves when it is over; who comes when all turns are
  // taken waits, and is served in the order of coming, whichever way it waits.
  //
  //   queue ──▶ in flight ──begin_leaving──▶ leaving: nobody ──end_leaving──▶ gone: its turn is
  //             (in `runs`)                  reaches it any more              the next one's
  //
  // No user's code is called while a run has its turn, but for its kernels and host functions.
  //
  // Waits for its turn; kCancelled once closed or by cancel_all, kDeadlineExceeded when it takes
  // too long, kResourceExhausted where max_runs_waiting do already.
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  Status enter(Run& run, Deadline deadline);
  // A thread that waits for the turn of its run.
  struct WaitingThread {
    enum class Answer { kNone, kTurn, kCancelled } answer = Answer::kNone;  // under the mutex
    std::condition_variable answered;
  };
  // A run that waits for its turn: on a thread of its own, or with functions of which one is
  // called, once.
  struct Waiting {
    Run* run = nullptr;
    std::function<void()> start = {};
    std::function<void(Status)> give_up = {};
    WaitingThread* thread_or_null = nullptr;
  };
  bool try_enter_or_queue(Waiting waiting, Status& status);
  // Before a run that waits on no thread is made: kResourceExhausted where too many wait.
  Status may_submit();
  // Takes an asynchronous run out of the queue: its give_up, to be called without locks and
  // followed by let_go(). Empty when it is not there: it has its turn, or waits for nothing.
  std::function<void(Status)> leave_queue(const Run& run);
  // Stops the runs in flight and ends those that wait for their turn or stream; closed: refuses
  // new ones.
  void cancel_all(bool is_closing);
  // What loop_reports() says from now on. Under the mutex.
  void report_loops(const Run& run);
  void report_loop(const Run& run, size_t i);
  // After leave(), end_leaving(), let_go() and leave_stream() the session may be gone.
  void leave(Run& run, bool with_report);
  // leave() in two steps: between them nobody reaches the run any more, but it still has its turn.
  void begin_leaving(Run& run, bool with_report = false);
  void end_leaving();
  // end_leaving() of a run that goes on to use the session, until let_go(). What is returned goes
  // to start_run(); may be empty.
  [[nodiscard]] std::function<void()> give_turn_back();
  // Starts a run that has just got its turn, which keeps the session: here where a run state is at
  // hand, else on a worker, because to build one takes its time.
  void start_run(std::function<void()> start);
  // Where the device has workers, of the pool, which a run that waits on no thread has prepared;
  // else here. Afterwards the session may be gone.
  void call_on_worker(std::function<void()> function);
  // Keeps the session until let_go().
  void hold();
  void let_go();
  // A run that stands behind a stream, and what cancels it there.
  struct BehindStream {
    const void* run;
    std::function<void()> cancel;
  };
  void enter_stream(BehindStream run);
  void leave_stream(const void* run);
  // In a callback of the session's own, where nobody may wait: the session goes by itself as soon
  // as it is idle. Its owner has let go of it.
  void orphan();

  // Threads that a run will need and that may not have been made yet.
  struct Needs {
    bool callback = false;
    bool timer = false;    // the scheduler's
    bool workers = false;  // where nobody polls the device
  };
  // kResourceExhausted where the system has no thread for one of them.
  Status prepare_threads(const Needs& needs);
  // Whoever waits moves the device on; elsewhere it moves by itself, or the scheduler polls it.
  bool do_waiters_poll() const { return host().needs_polling() && !is_host_driven(); }
  // Waits for the condition variable until the predicate (asked under the lock) holds.
  // False when the deadline came first.
  template <typename Predicate>
  bool wait_until_true(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                       Predicate is_true, Deadline deadline = std::nullopt) {
    while (do_waiters_poll() && !is_true()) {
      if (deadline && std::chrono::steady_clock::now() >= *deadline) return false;
      lock.unlock();
      const bool has_moved = host().poll();
      lock.lock();
      if (!has_moved && !is_true()) changed.wait_for(lock, std::chrono::microseconds(50));
    }
    if (deadline) return changed.wait_until(lock, *deadline, is_true);
    changed.wait(lock, is_true);
    return true;
  }
  // Until nothing uses the session any more.
  void wait_until_idle(std::unique_lock<std::mutex>& lock) {
    wait_until_true(lock, idle, [this] { return is_idle(); });
  }

  std::mutex mutex;
  std::condition_variable idle;  // is_idle() has come true
  std::vector<Run*> runs;        // under the mutex; keeps its capacity
  std::deque<Waiting> queue;     // under the mutex; empty while a turn is free
  size_t num_turns = 0;          // under the mutex; taken: runs in flight, and those that leave
  size_t num_holds = 0;          // under the mutex
  std::vector<BehindStream> behind_streams;  // under the mutex; of run_on, not yet in flight
  bool is_closed = false;                    // under the mutex
  bool is_orphan = false;                    // under the mutex
  // Under the mutex: nothing uses the session any more.
  bool is_idle() const {
    return num_turns == 0 && queue.empty() && behind_streams.empty() && num_holds == 0;
  }
  std::vector<LoopReport> last_loops;  // under the mutex
  // Work for a device could not be recorded and is issued node by node; why, of the first.
  void note_refusal(const Status& why);
  std::string why_not_recorded;  // under the mutex

  std::vector<Device*> polled_devices;  // by the scheduler; those whose loops the host drives
  SessionCallbacks callbacks;           // last: ends first, while everything else is still there

 private:
  bool try_enter(Run& run);
  Status may_wait() const;
  void take_out(const Run& run, bool with_report);
  std::function<void()> pass_turn();
  void settle(std::unique_lock<std::mutex> lock);

  SessionCore(const Library& l, std::shared_ptr<SharedThreads> t, SessionOptions&& o, Graph&& g)
      : library(l),
        options(std::move(o)),
        num_wait_spins(t->num_processors() > 1 ? 2000 : 0),
        graph(std::move(g)),
        fork_guard(t->fork_guard()),
        threads(std::move(t)),
        callbacks(threads->callback_threads()) {}
  static std::shared_ptr<SharedThreads> threads_of(const SessionOptions& options) {
    return options.threads ? options.threads : std::make_shared<SharedThreads>(options.num_threads);
  }
};

// The end of `options.timeout` from now; none where it is further than the clock counts.
SessionCore::Deadline deadline_of(const RunOptions& options);

}  // namespace eddy
