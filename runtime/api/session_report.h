// ValueDescription, RunCounts, LoopReport and OperatorTime: what a session says of its inputs and
// outputs, of its runs, of its loops, and of its operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "graph/ir/types.h"

namespace eddy {

struct ValueDescription {
  std::string name;
  ValueType type;
  std::string text;  // "float[batch,576]": with the names of symbolic dimensions
};

struct RunCounts {
  size_t in_flight = 0;
  size_t waiting = 0;  // for their turn, or behind their stream
};

struct LoopReport {
  std::string path;        // "decode/attend"
  int64_t iterations = 0;  // of the last time it ran
  std::string driven;      // "device" or "host"
  std::string reason;      // why that way
};

// Of the nodes of one operator, in all runs (runtime/execute/runs/operator_times.h).
struct OperatorTime {
  const char* name = "";  // "MatMul", "com.microsoft.MatMulNBits"; as long as the session
  uint64_t num_calls = 0;
  uint64_t time_ns = 0;
};

}  // namespace eddy
