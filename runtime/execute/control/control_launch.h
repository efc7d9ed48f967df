// ControlLaunch: one way in which a device drives a loop of one run, with memory of its own, ready
// to be launched again and again: a recording with conditional nodes (control_recording.h), or one
// kernel (persistent_launch.h).
//
// Errors: launch() names the driver's answer. Threads: those of its run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/device/buffer.h"

namespace eddy {

class ControlLaunch {
 public:
  virtual ~ControlLaunch() = default;

  // What it was made for; by the caller. Empty: for any addresses.
  std::vector<const void*> addresses;
  // When it was taken last, counted by the caller.
  uint64_t last_taken = 0;

  // Nobody else holds memory that a launch would write.
  virtual bool is_free() const = 0;
  // The rows of that many iterations fit.
  virtual bool has_room([[maybe_unused]] int64_t num_iterations) const { return true; }
  // Gives the words that the host writes their values: limits, decisions carried in, where rows go.
  virtual Status write_words() = 0;
  // Enqueues all of it.
  virtual Status launch(void* native_stream) = 0;
  // The outputs' slots become what the launch leaves there; iterations are read from its words.
  virtual Status leave() = 0;
  // The loop that had not ended when the device last reported; none: it is all over.
  virtual NodeId innermost_running() const = 0;
  // It is all over.
  virtual void forget() = 0;
  // Host memory in which the device counts; iterations are read there until another launch leaves.
  virtual BufferRef words() const = 0;
  // What is to be reported of how it is driven; empty: nothing.
  virtual std::string text() const { return ""; }
  // < 0: a case had no branch for its selector; the run's error names it.
  virtual int32_t check() { return 0; }
};

}  // namespace eddy
