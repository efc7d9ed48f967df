// Run: one run of a session, however it is submitted: its values, and its way from phase to phase
// (session_runs.h has the table).
//
// A synchronous run is one that its thread waits for: that thread launches it, in place where it
// may, and ends it. Otherwise the run goes on by itself, on the threads that bring its turn or end
// its last strand. Either way it ends once, in Run::end(), in this order:
//
//   outputs collected or copied, streams of rows ended → its state given back → its turn passed on
//   → its caller's stream goes on → waiting threads wake → its callback, on the callback thread,
//   unless what is asked at once has done that already
//
// So a callback that blocks holds up callbacks of its session, and no run; and while a run has its
// turn no user's code is called but its kernels, host functions and rows.
//
// Internal to runtime/api. Ownership: the owner keeps a run until it has ended. Threads: submitted
// and asked by one at a time; stop from any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/base/short_lock.h"
#include "runtime/api/answer_watch.h"
#include "runtime/api/deadline_timer.h"
#include "runtime/api/run_end.h"
#include "runtime/api/run_values.h"
#include "runtime/api/session_runs.h"

namespace eddy {

enum class CallbackWake;
class RankRun;

class Run : private RunEntry {
 public:
  enum class Kind {
    kOnce,  // takes a state when it is sure of its turn, and collects its outputs
    kKept,  // has a state from the beginning, where its values are bound
  };
  Run(SessionCore& core, Kind kind, TraceRecorder* trace_or_null);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  RunValues& values() { return values_; }
  // Whether take_outputs() is wanted; else a run of kind kOnce makes them for its streams only.
  void collect_if(bool is_wanted) { collected_ = is_wanted ? Collected::kAll : Collected::kNone; }
  // These outputs go there instead; both stay until the run has ended.
  void collect_to(std::span<const size_t> outputs, std::span<Tensor> into) {
    wanted_ = outputs;
    into_ = into;
    collected_ = Collected::kWanted;
  }
  SessionCore& core() const { return core_; }

  // Both need a run that has ended. A failure of `ready`, or of what the run needs, refuses it: it
  // has ended with that status, which is returned, and its RunEnd is not called.
  Status run(const RunOptions& options, Status ready);
  // `begun`, where there is one, is called once it is under way, before it can end.
  Status submit(const RunOptions& options, Status ready, Stream* stream_or_null,
                std::shared_ptr<RunEnd> end_or_null, const std::function<void()>& begun = {});
  // Calls end() of one that was refused, on the callback thread.
  static void call_back_refused(SessionCore& core, std::shared_ptr<RunEnd> end, Status why);

  bool is_under_way() const { return !signal_.is_set(); }
  // Whether this thread may wait for it.
  Status check_wait() const { return runs_->check_wait(signal_); }
  // Until it has ended. False: the deadline came first.
  bool wait(const Deadline& deadline = {}) { return runs_->wait(signal_, false, deadline); }
  // By a thread that waits for a submitted run: runs it here where no worker has begun it yet.
  void help();
  // The same; the thread then helps with what its session calls back (CallbackQueue::help()).
  void help_before_callbacks();
  // It is overdue, and still waits for an answer that is owed.
  bool owes() const { return runs_->owes(*this); }
  // The first reason counts; none once the run has ended. May end the run, on this thread.
  void stop(StopReason reason);
  // Stops the session's runs in flight, and ends those that wait for their turn or stream; closing:
  // refuses new ones.
  static void stop_all(SessionCore& core, bool is_closing);
  // True: the run is under way, and takes its owner, which goes as soon as it has ended.
  bool leave_to(std::shared_ptr<void>& owner) { return runs_->keep(*this, owner); }

  // Of the last run, once it has ended; by any thread, also where the next one has begun.
  Status status() const;
  Result<NamedTensors> take_outputs() { return std::move(outputs_); }

 private:
  void end_answer_watch();

  enum class Collected { kNone, kAll, kWanted };

  Status begin(const RunOptions& options, bool calls_back);
  Status begin_with_threads(const RunOptions& options, bool calls_back);
  Status watch_answers();
  // By the watch. True: which answer does not come has been said.
  bool tell_overdue(const std::function<void(const Status&)>& on_overdue);
  Status take_state();
  Status take_state_before_turn();
  Status refuse(const RunOptions& options, Status why);
  Status enter(Stream& stream);
  // Its stream has come to it.
  static void arrive(const SessionRuns::Arrival& arrival);
  // It has its turn: its thread goes on or, where none waits, it is launched: here where a run
  // state is at hand, else on a worker, because to build one takes its time.
  void start();
  void launch_in_a_row();
  bool is_launched_here() const;  // its main strand
  bool needs_workers() const;     // of a device that is not polled
  // False: there was no memory, and it has ended. Nothing may throw: strands would be left behind.
  bool launch(bool is_submitting = false) noexcept;
  void send_worker() noexcept;
  static void take_ready(void* runs);
  static void on_complete(void* run);
  // It has run, or `why` says why it has not. Afterwards it may be gone.
  void end(Status why = Status::ok());
  // With ranks: it begins once all have begun it, and ends once all agree how.
  void begin_on_ranks() noexcept;
  void on_begun(const Status& status);
  void start_strands(bool is_submitting) noexcept;
  void end_on_ranks();
  // By the thread that waits for the run: it moves on what ranks say to each other, for a moment.
  template <typename IsOver>
  void watch_ranks(const IsOver& is_over);
  void abandon(const Status& why);
  void finish();
  Status collect();
  void leave();
  static void call_back(SessionCore& core, std::shared_ptr<RunEnd> end, Status status,
                        CallbackWake wake);
  static void post_end(SessionCore& core, std::shared_ptr<RunEnd> end, Status status,
                       CallbackWake wake);

  SessionCore& core_;
  const std::shared_ptr<SessionRuns> runs_;
  const Kind kind_;
  RunValues values_;
  DeadlineTimer timer_;
  std::shared_ptr<AnswerWatch> answer_watch_;  // of this run; null: none
  bool is_submitters_ = false;                 // run by the thread that submits it
  Collected collected_;
  std::span<const size_t> wanted_;
  std::span<Tensor> into_;
  // What follows the end of a run that no thread waits for.
  std::shared_ptr<RunEnd> end_or_null_;
  std::shared_ptr<Gate> gate_or_null_;         // behind which its caller's stream waits
  StopReason outcome_ = StopReason::kRunning;  // when its last strand ended
  void set_status(Status status);

  mutable ShortLock status_lock_;
  std::atomic<bool> has_failed_{false};  // else the status is not looked at; released with it
  Status status_;                        // under the lock
  Result<NamedTensors> outputs_ = NamedTensors();
  // With ranks.
  std::optional<uint64_t> ticket_;  // that is neither begun nor abandoned
  RankRun* rank_run_or_null_ = nullptr;
  std::atomic<bool> has_begun_{false};  // on all ranks, or never will; orders nothing
  Status refused_;                      // why not all ranks have begun it
  EndSignal signal_;  // set: it has ended or, where a thread waits for it, that thread has to go on
};

}  // namespace eddy
