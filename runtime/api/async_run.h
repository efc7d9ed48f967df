// AsyncRun: a run that nobody waits for on its own thread; it owns itself until its callback has
// been called.
//
//   starting ──▶ behind its stream ──▶ waiting for its turn ──▶ launched ──▶ over
//                       └───────cancel, deadline────┴──────────────────────────▲
//
// A run that waits ends as soon as it is cancelled or passes its deadline; one that is launched
// stops at its next command. Once its last strand has ended its outputs are collected, its stream's
// gate opens, its run state and its turn go to others; the callback thread then calls back. So a
// callback that blocks holds up callbacks of its session, and no run.
//
// Internal to runtime/api. Every way of ending opens the gate and calls back exactly once.
// Threads: submit from any; the rest on whichever thread brings the news. phase_ and wish_ are
// under the handle's mutex, which is taken before the session's; nothing that may start runs is
// called under either.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/api/deadline_timer.h"
#include "runtime/api/session_core.h"

namespace eddy {

class AsyncRun;

struct RunHandle::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;               // under the mutex
  Status status;                      // under the mutex, once done
  AsyncRun* async_or_null = nullptr;  // under the mutex; null once it is over
  const void* session = nullptr;
  const void* threads = nullptr;
  std::shared_ptr<Device> polled_or_null;  // whoever waits moves it on
  std::shared_ptr<const ForkGuard> fork_guard;
};

class AsyncRun : private EventListener {
 public:
  static RunHandle submit(SessionCore& core, Stream* stream_or_null, NamedTensors inputs,
                          RunCallback callback, const RunOptions& options);
  // The first reason counts; none once the run is over.
  static void stop(RunHandle::State& handle, StopReason reason);
  // As its deadline does, for whoever tests that at a moment of his own.
  static void stop(const RunHandle& handle, StopReason reason) { stop(*handle.state_, reason); }

 private:
  enum class Phase { kStarting, kBehindStream, kTurn, kLaunched, kOver };

  AsyncRun(SessionCore& core, NamedTensors inputs, const RunOptions& options);

  Status prepare(const std::vector<StreamedOutput>& streams);
  void submit_to(Stream& stream, std::shared_ptr<AsyncRun> self);
  // In a forked child, without a thread, or with too many that wait: over at once, called back on
  // this thread.
  static RunHandle refuse(SessionCore& core, const RunCallback& callback, const RunOptions& options,
                          Status why);
  // Puts the run into the stream's order. True: everything in front has run already.
  Result<bool> queue_on(Stream& stream);
  void on_complete() override;  // everything in front on the stream has run
  // Under the handle's mutex: takes a run that waits out of where it waits. What is returned ends
  // it, and is to be called without locks; empty when the run does not wait.
  std::function<void()> leave_wait();
  // Why a run that was stopped while it waited has ended.
  static Status wish_status(StopReason wish, const char* waited_for);
  static void take_turn(std::shared_ptr<AsyncRun> self);
  SessionCore::Waiting waiting(const std::shared_ptr<AsyncRun>& self);
  static void launch(std::shared_ptr<AsyncRun> self);
  static void end_launched(std::shared_ptr<AsyncRun> self);  // its last strand has ended
  // Of a run that never entered.
  static void post_end(std::shared_ptr<AsyncRun> self, Status status);
  // Of one that has: what it made, or why it made nothing, is kept for the callback, and everything
  // of the session's is let go of but the session.
  static void leave(std::shared_ptr<AsyncRun> self, Status status);
  Result<NamedTensors> collect(Status status);
  // No stop reaches the run from here on.
  void be_over();
  void end();  // on the callback thread
  static void call_back(SessionCore& core, const RunCallback& callback,
                        Result<NamedTensors> result);

  SessionCore& core_;
  NamedTensors inputs_;   // kept alive while the run reads them
  RunCallback callback_;  // set once the run is made
  const SessionCore::Deadline deadline_;
  const std::shared_ptr<RunHandle::State> handle_ = std::make_shared<RunHandle::State>();
  DeadlineTimer timer_;                           // from submit to the end
  Phase phase_ = Phase::kStarting;                // under the handle's mutex
  StopReason wish_ = StopReason::kRunning;        // under the handle's mutex
  bool has_left_stream_ = false;                  // under the handle's mutex
  std::unique_ptr<Event> front_;                  // with a stream: recorded behind what is in front
  std::shared_ptr<Gate> gate_;                    // with a stream: opened when the run has ended
  std::shared_ptr<AsyncRun> self_;                // while it waits for the stream
  Result<NamedTensors> result_ = NamedTensors();  // once it is over
  std::optional<Run> run_;  // goes before the turn does: it uses the session's program
};

}  // namespace eddy
