// DeviceLoop: what the state of a run knows of a loop or branch that its device may drive by
// itself.
//
// Threads: innermost_running() any, others those of the run.
#pragma once

#include <string>

#include "graph/ir/graph.h"

namespace eddy {

class DeviceLoop {
 public:
  // The loop, this or one inside, in which the device was last known to be; none: it has ended.
  virtual NodeId innermost_running() const = 0;
  // What it did the last time is over.
  virtual void forget() = 0;
  // Why the host drove it when it was chosen last; empty: the device did.
  virtual const std::string& why_by_host() const = 0;
  // What is to be reported of how the device drove it last; may be empty. Of a run that has ended.
  virtual std::string how_by_device() const = 0;
  // Gives up its place among those that the process may have at once, if it has one: the run has
  // ended, or the loop.
  virtual bool give_place_back() = 0;
  virtual bool is_on(const void* native_stream) const = 0;

 protected:
  ~DeviceLoop() = default;
};

}  // namespace eddy
