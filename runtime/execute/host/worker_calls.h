// WorkerCalls: what tasks of one run have called by a worker of the host's device, because it may
// wait or take long; the task waits for it, and others go on.
//
// One call is made at a time, so calls may share what knows no threads, as a run's recorder.
//
// A device whose work moves only while a thread polls has no workers: then the call is made at once
// on the thread's own stack.
//
// Ownership: the device outlives this. Threads: those of the scheduler. Cost: a hand-over to a
// worker and back, microseconds; some 80 where both sleep.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace eddy {

class WorkerCalls {
 public:
  using Function = void (*)(void* context);

  explicit WorkerCalls(Device& host);
  bool has_workers() const { return has_workers_; }
  // In a task.
  void call(Function function, void* context);

 private:
  Device& host_;
  const bool has_workers_;
  std::unique_ptr<Stream> stream_;  // made when first needed
};

}  // namespace eddy
