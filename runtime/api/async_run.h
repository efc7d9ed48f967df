// AsyncRun: a run that nobody waits for on its own thread; it owns itself until its callback has
// been called.
//
//   submit → (in front of it on the stream) → its turn among the runs in flight → launch
//          → last strand ends: the stream's gate opens → callback thread: outputs, callback, done
//
// Internal to runtime/api. Every way of ending opens the gate and calls back exactly once.
// Threads: submit from any; begin and end run on whichever thread brings the news.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/api/session_core.h"

namespace eddy {

struct RunHandle::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;        // under the mutex
  Status status;               // under the mutex, once done
  Run* run_or_null = nullptr;  // under the mutex; null before launch and once done
  bool is_cancelled = false;   // under the mutex
  const void* session = nullptr;
  std::shared_ptr<Device> polled_or_null;  // whoever waits moves it on
};

class AsyncRun : private EventListener {
 public:
  static RunHandle submit(SessionCore& core, Stream* stream_or_null, NamedTensors inputs,
                          RunCallback callback, const RunOptions& options);

 private:
  AsyncRun(SessionCore& core, NamedTensors inputs, RunCallback callback, const RunOptions& options);

  // Puts the run into the stream's order. True: everything in front has run already.
  Result<bool> queue_on(Stream& stream);
  void on_complete() override;  // everything in front on the stream has run
  static void take_turn(std::shared_ptr<AsyncRun> self);
  static void launch(std::shared_ptr<AsyncRun> self);
  static void post_end(std::shared_ptr<AsyncRun> self, Status status, bool has_entered);
  void end(Status status, bool has_entered);
  void call_back(Result<NamedTensors> result);

  SessionCore& core_;
  NamedTensors inputs_;  // kept alive while the run reads them
  RunCallback callback_;
  const std::optional<std::chrono::steady_clock::time_point> deadline_;
  const std::shared_ptr<RunHandle::State> handle_ = std::make_shared<RunHandle::State>();
  std::unique_ptr<Event> front_;   // with a stream: recorded behind what is in front
  std::shared_ptr<Gate> gate_;     // with a stream: opened when the run has ended
  std::shared_ptr<AsyncRun> self_; // while it waits for the stream
  std::optional<Run> run_;  // goes before the session is left: it uses the session's program
};

}  // namespace eddy
