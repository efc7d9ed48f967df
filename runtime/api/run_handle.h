// RunHandle: a run that Session::run_async() or run_on() has made. Copies refer to the same run.
//
// Errors: those of runs in session.h. Threads: any. May outlive its session.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "graph/base/status.h"
#include "runtime/api/run_options.h"
#include "runtime/api/tensor.h"

namespace eddy {

class Stream;
enum class StopReason : uint32_t;
struct SessionCore;

using RunCallback = std::function<void(Result<NamedTensors>)>;

class RunHandle {
 public:
  // Blocks until the run has ended and its callback has returned; the run's result. A run that no
  // worker has begun yet may run here, and be called back here.
  Status wait();
  // Blocks for so long at most, and runs nothing. True: wait() has its result at once. Where wait()
  // would be refused, it returns at once.
  bool wait_for(std::chrono::nanoseconds timeout);
  bool is_done() const;
  void cancel();  // no effect once the run has ended; one that still waits ends at once

 private:
  friend class Session;
  friend void stop_run(const RunHandle& run, StopReason reason);
  struct State;
  explicit RunHandle(std::shared_ptr<State> state);
  static RunHandle submit(SessionCore& core, Stream* stream_or_null, NamedTensors inputs,
                          RunCallback callback, const RunOptions& options);

  std::shared_ptr<State> state_;
};

// For tests: stops the run as its deadline does, at a moment of the caller's.
void stop_run(const RunHandle& run, StopReason reason);

}  // namespace eddy
