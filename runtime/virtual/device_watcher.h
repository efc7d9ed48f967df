// DeviceWatcher: is called for what a virtual device does, as it happens: the trace that a checker
// reads.
//
// Lanes are streams and strands; lane 0 is the host. An event is named by its address and counts
// its records.
//
// Threads: one call at a time, from the thread that moves the device or issues to it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/virtual/chooser.h"

namespace eddy {

struct EventPoint {
  const void* event = nullptr;
  uint64_t record = 0;  // 0: never recorded
};

class DeviceWatcher {
 public:
  virtual ~DeviceWatcher() = default;
  virtual void on_record(LaneNumber lane, const EventPoint& point) = 0;
  // `lane` goes on because `point` has been reached.
  virtual void on_wait(LaneNumber lane, const EventPoint& point) = 0;
  // The host gives `lane` an item, which begins later, behind all that the host had seen then.
  virtual void on_issue(LaneNumber lane, uint64_t item) = 0;
  virtual void on_begin(LaneNumber lane, uint64_t item) = 0;
  // The host has seen that the lane is idle.
  virtual void on_idle_seen(LaneNumber lane) = 0;
  // The host has seen the point reached.
  virtual void on_point_seen(const EventPoint& point) = 0;
  // A run of strands begins at the host's word, with the main one; a strand has ended, the main one
  // or each of a run that was stopped.
  virtual void on_start(LaneNumber main_strand) = 0;
  virtual void on_end(LaneNumber strand) = 0;
  // Memory is handed out: what was done to it before is over.
  virtual void on_allocate(const void* data, size_t size_bytes) = 0;
};

}  // namespace eddy
