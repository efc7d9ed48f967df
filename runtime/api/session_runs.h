// SessionRuns: which runs of a session are under way, which of them wait, and when the session may
// go. One lock; each run is in one phase, and in the list of its phase:
//
//   phase         list      leaves it when                       for
//   kEnded                  Run is submitted                     kBehindStream | kQueued | kRunning
//   kBehindStream behind    its stream comes to it               kQueued | kRunning
//                           it is stopped, or the session closed kEnding
//   kQueued       queue     a turn comes free: by priority, then kRunning
//                           in the order of coming
//                           it is stopped                        kEnding
//   kReady        ready     a worker takes it, likewise, or a    kRunning
//                           thread that waits for it does
//   kRunning      in flight it has to be started by a worker     kReady
//                           its last strand has ended, or it     kEnding, or at once
//                           cannot start                         kEnded (keeps its state)
//   kEnding                 Run::end() has given everything back kEnded
//
// A stop has a reason, of which the first counts: a run that waits ends with it at once; one that
// runs stops at its next command; one that is ending, or has ended, is not reached. What uses the
// session outside of these lists holds it. No lock is held while a run is stopped or started, since
// both may call users' functions.
//
// Internal to runtime/api. Ownership: shared by the session and its runs' handles, so that a handle
// may ask after the session has gone. Threads: any. Cost: O(1), without allocation; a run enters
// and leaves with one locked section each.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "graph/base/short_lock.h"
#include "runtime/api/end_signal.h"
#include "runtime/api/fork_guard.h"
#include "runtime/api/run_options.h"
#include "runtime/api/session_report.h"
#include "runtime/execute/runs/run_pool.h"

namespace eddy {

struct RunEntry;

using Deadline = std::optional<std::chrono::steady_clock::time_point>;
// From now on; none where it is further than the clock counts.
Deadline deadline_in(std::chrono::nanoseconds timeout);

enum class RunPhase : uint8_t { kEnded, kBehindStream, kQueued, kReady, kRunning, kEnding };

// The place of a run in a stream. Under the lock; null: the run was stopped there.
struct StreamEntry {
  RunEntry* run_or_null = nullptr;
};

// What SessionRuns knows of a run. Under its lock, but for what the run sets before it is
// submitted and reads in its own thread.
struct RunEntry {
  // Set by the run, while it has ended.
  bool is_waited_for = false;  // a thread waits for its turn, and launches it
  Priority priority = Priority::kNormal;
  Deadline deadline;
  BoundRun* state_or_null = nullptr;  // where a stop reaches it; null: it has none yet

  RunPhase phase = RunPhase::kEnded;
  RunPhase waited_in = RunPhase::kEnded;  // of a run that was stopped while it waited
  StopReason stop = StopReason::kRunning;
  bool has_turn = false;
  bool is_overdue = false;               // it was stopped, and an answer that it waits for is late
  uint32_t num_stopping = 0;             // threads that stop it right now; it ends after that
  StreamEntry* place_or_null = nullptr;  // behind its stream
  std::shared_ptr<void> keeper;          // owns the run until it has ended
  RunEntry* previous_or_null = nullptr;
  RunEntry* next_or_null = nullptr;
};

// Why a run that was stopped while it waited has ended.
Status stop_status(const RunEntry& run);

// Of runs, in the order of coming; each is in one list at most.
class RunList {
 public:
  void push_back(RunEntry& run);
  void erase(RunEntry& run);
  RunEntry* first_or_null() const { return first_; }
  RunEntry* pop_front();
  size_t size() const { return size_; }
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (RunEntry* run = first_; run != nullptr; run = run->next_or_null) visit(*run);
  }

 private:
  RunEntry* first_ = nullptr;
  RunEntry* last_ = nullptr;
  size_t size_ = 0;
};

// Runs of each priority in the order of coming.
class RunQueue {
 public:
  void push_back(RunEntry& run) { of(run).push_back(run); }
  void erase(RunEntry& run) { of(run).erase(run); }
  // Of the highest priority.
  RunEntry* first_or_null() const;
  RunEntry* pop_front();
  size_t size() const;
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const RunList& list : lists_) list.for_each(visit);
  }

 private:
  RunList& of(const RunEntry& run);

  std::array<RunList, kNumPriorities> lists_;  // the highest first
};

// Turns: at most so many runs are in flight; the others wait in a queue. Not locked.
class Turns {
 public:
  explicit Turns(uint32_t max) : max_(max) {}
  bool has_limit() const { return max_ != 0; }
  bool try_take(RunEntry& run);
  void enqueue(RunEntry& run);
  // The turn of a run that has ended goes to the first of the queue, which is returned.
  RunEntry* pass();

  RunList in_flight;
  RunQueue queue;  // empty while a turn is free
  size_t num_taken() const { return num_taken_; }

 private:
  const uint32_t max_;    // 0: no limit
  size_t num_taken_ = 0;  // by runs in flight, and those that give back their state
};

class SessionRuns {
 public:
  // Of whose threads it is, and how a thread waits there.
  struct Waits {
    const void* session = nullptr;  // compared only
    const void* threads = nullptr;
    std::shared_ptr<const ForkGuard> fork_guard;
    int num_spins = 0;
    std::shared_ptr<Device> polled_or_null = {};  // moves only while a waiting thread polls it
  };

  SessionRuns(uint32_t max_in_flight, uint32_t max_waiting, Waits waits)
      : max_waiting_(max_waiting), waits_(std::move(waits)), turns_(max_in_flight) {}
  // Before the first run.
  void set_polled(std::shared_ptr<Device> device) { waits_.polled_or_null = std::move(device); }
  // Else each run has its turn as it enters.
  bool has_limit() const { return turns_.has_limit(); }
  bool do_waiters_poll() const { return waits_.polled_or_null != nullptr; }

  bool is_in_child() const { return waits_.fork_guard->is_in_child(); }
  // Whether this thread may wait for it: not in a forked child, nor, while it is not set, where
  // that could depend on this very thread.
  Status check_wait(const EndSignal& signal) const;
  // The same of a run to come.
  Status check_wait() const;
  // Waits, moving what waiting threads move.
  bool wait(EndSignal& signal, bool spins, const Deadline& deadline = {}) const;

  // kResourceExhausted where too many runs wait already.
  Status may_submit();
  enum class Admission { kTurn, kQueued, kRefused };
  // Of a run that has ended. Refused, with the reason: it is as it was. Queued: with a thread that
  // waits it has its turn, or has ended, once its signal is set; else it may be gone.
  Admission enter(RunEntry& run, Status& why);
  Status enter_stream(RunEntry& run, StreamEntry& place);
  // The stream takes no commands. False: the run was stopped meanwhile, and is ended elsewhere.
  bool undo_enter_stream(RunEntry& run);
  // The run behind the place goes on; null: it was stopped there. Refused, it has to be ended.
  // Holds the session until let_go().
  struct Arrival {
    RunEntry* run_or_null = nullptr;
    Admission admission = Admission::kRefused;
    Status why;
  };
  Arrival leave_stream(StreamEntry& place);
  // A run with a turn has its state, where stops reach it from now on.
  void reach(RunEntry& run, BoundRun& state);
  // A run with a turn and state is to be started by a worker: calls `send`, unless one is on its
  // way, which sends a worker for take_ready(). Under the lock, so that the run, and with it the
  // session, does not go before the worker is sent.
  void make_ready(RunEntry& run, const std::function<void()>& send);
  // By a worker that was sent: null where another thread has come first.
  RunEntry* take_ready();
  // By a thread that waits for it. True: it starts the run.
  bool claim(RunEntry& run);
  // Threads that stop the run right now have left its state.
  void await_stops(const RunEntry& run);
  // No stop reaches the run any more; it still has its turn.
  void withdraw(RunEntry& run);
  // The run has ended, and its turn is the next one's, which is returned. Holds the session
  // `num_holds` times, and once more for a keeper. Unheld, the session may be gone afterwards.
  RunEntry* leave(RunEntry& run, size_t num_holds, std::shared_ptr<void>& keeper);
  // Takes the keeper, which owns the run until it has ended. False: it has ended.
  bool keep(RunEntry& run, std::shared_ptr<void>& keeper);

  // True: it waited, and has to be ended by the caller.
  bool stop(RunEntry& run, StopReason reason);
  // Stops all; closing: refuses new ones. Those returned waited, and have to be ended. Holds the
  // session until let_go().
  RunList stop_all(bool is_closing);

  // The run goes on after its stop, as it waits for an answer that does not come. Holds the
  // session.
  void note_overdue(RunEntry& run);
  // Whether it still does, of one that was noted.
  bool owes(const RunEntry& run);

  // Keeps the session until let_go(), after which it may be gone.
  void hold();
  void let_go();
  // Until nothing uses the session any more, or nothing but overdue runs do.
  void wait_until_idle();
  void wait_until_overdue();
  bool is_idle();
  // Calls `end`, once, as soon as nothing uses the session any more.
  void orphan(std::function<void()> end);
  RunCounts counts();
  std::string describe();

 private:
  Status may_wait() const;
  Status may_enter(RunEntry& run, RunPhase where);
  Admission admit(RunEntry& run, Status& why);
  void begin_ready(RunEntry& run);
  template <typename Visit>
  void for_each_begun(const Visit& visit);
  template <typename List>
  void end_wait(RunEntry& run, List& list);
  bool stop_waiting(RunEntry& run, StopReason reason);
  bool begin_stop(RunEntry& run, StopReason reason);
  void stop_running(std::span<RunEntry* const> runs, StopReason reason,
                    std::unique_lock<ShortLock> lock);
  void await_stops(const RunEntry& run, std::unique_lock<ShortLock>& lock);
  bool is_unused() const {
    return turns_.num_taken() == 0 && turns_.queue.size() == 0 && num_places_ == 0 &&
           num_holds_ == 0;
  }
  // All that is left waits for owed answers, or was stopped behind such runs in a stream.
  bool is_left_to_answers() const;
  static bool is_owing(const RunEntry& run);
  template <typename IsOver>
  void wait_until(const IsOver& is_over);
  void settle(std::unique_lock<ShortLock>& lock);

  const uint32_t max_waiting_;
  Waits waits_;
  ShortLock lock_;
  // Under the lock.
  Turns turns_;
  RunQueue ready_;       // with turns
  size_t num_sent_ = 0;  // workers on their way, one for each of ready_ at least
  RunList behind_;
  size_t num_places_ = 0;  // in streams; runs that were stopped there have left theirs behind
  size_t num_holds_ = 0;
  size_t num_overdue_ = 0;  // of those in flight
  bool is_closed_ = false;
  std::function<void()> end_session_;    // an orphan's
  std::condition_variable_any idle_;     // nothing, or overdue runs only, are left
  size_t num_waiting_until_idle_ = 0;    // threads that idle_ wakes
  std::condition_variable_any stopped_;  // num_stopping of a run has become 0
};

}  // namespace eddy
