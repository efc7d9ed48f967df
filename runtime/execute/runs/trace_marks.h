// Trace marks: commands that write begin and end events around the nodes of a traced run.
//
// Only a traced run state has them in its commands, so runs that are not traced pay nothing.
#pragma once

#include "runtime/execute/values/loop_progress.h"
#include "runtime/trace/trace_recorder.h"

namespace eddy {

struct TraceMark {
  TraceRecorder* recorder = nullptr;
  LaneId lane;
  TraceNameId name;
  const LoopProgress* loop_or_null = nullptr;  // its iteration is shown behind the name

  static bool begin(void* mark) {
    const auto& self = *static_cast<TraceMark*>(mark);
    const int64_t iteration =
        self.loop_or_null != nullptr ? self.loop_or_null->iteration() : TraceRecorder::kNoIteration;
    self.recorder->begin(self.lane, self.name, iteration);
    return true;
  }
  static bool end(void* mark) {
    const auto& self = *static_cast<TraceMark*>(mark);
    self.recorder->end(self.lane);
    return true;
  }
};

}  // namespace eddy
