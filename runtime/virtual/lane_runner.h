// LaneRunner: runs the work of a virtual device's lanes, where that is to be somewhere else than in
// the middle of poll(): on a stack of its own for each lane, say, as a tool that looks for races
// wants it.
//
// Called without the device's lock, one call at a time; returns when the work is done.
#pragma once

#include <cstdint>

#include "graph/base/check.h"
#include "runtime/device/strand_runner.h"
#include "runtime/virtual/chooser.h"

namespace eddy {

// One command's code: a launch or a decision.
struct LaneWork {
  WorkFunction run = nullptr;
  DecideFunction decide = nullptr;  // instead of `run`
  void* context = nullptr;

  // Of a launch: 1, or 0 where it failed; of a decision: what it says.
  int32_t operator()() const {
    EDDY_DCHECK((run == nullptr) != (decide == nullptr)) << "a command works or decides";
    return run != nullptr ? run(context) : decide(context);
  }
};

class LaneRunner {
 public:
  virtual ~LaneRunner() = default;
  virtual int32_t run(LaneNumber lane, const LaneWork& work) = 0;
};

}  // namespace eddy
