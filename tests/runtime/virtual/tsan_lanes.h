// TsanLanes: the lanes of a virtual device as fibers of ThreadSanitizer's, so that what no record,
// wait or fork orders is a data race that it reports, although one thread does everything.
//
//   auto lanes = TsanLanes::make_or_null();  // null outside of the tsan config
//   VirtualDevice device({.engine = {.watcher_or_null = lanes.get(), .runner_or_null =
//   lanes.get()}});
//
// Each lane has a stack and a fiber of its own; the switches between them order nothing. Order
// comes from what the device reports to its watcher, and from nothing else:
//
//   releases                      acquires
//   a record of an event          a wait for it that goes on, a host that has seen it
//   a fork                        the strand that begins
//   the host, issuing or starting the lane, when it begins
//   a strand that ends, a stream  the host that has seen it
//     that is idle
//
// What work does besides counts too, as on any machine. An allocator's locks would order every two
// lanes that allocate, and hide most of what is missing: give the device one that is watched apart
// (watched_allocator), in which only a block that comes back orders its last user before its next.
// Lanes share the thread's thread_local variables: work that keeps something there is reported
// falsely.
//
// Ownership: outlives its devices, which may come one after another; lanes of the same number
// share a stack. Threads: one, the polling one. Cost: two switches a command.
#pragma once

#include <memory>

#include "runtime/device/device.h"
#include "runtime/virtual/device_watcher.h"
#include "runtime/virtual/lane_runner.h"

namespace eddy {

class TsanLanes : public LaneRunner, public DeviceWatcher {
 public:
  static std::unique_ptr<TsanLanes> make_or_null();
  // Outlived by `allocator`; outlives what it has handed out.
  virtual std::unique_ptr<Allocator> watched_allocator(Allocator& allocator) = 0;
};

}  // namespace eddy
