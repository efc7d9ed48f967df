// ValueDescription and LoopReport: what a session says of its inputs and outputs, and of its loops.
#pragma once

#include <cstdint>
#include <string>

#include "graph/ir/types.h"

namespace eddy {

struct ValueDescription {
  std::string name;
  ValueType type;
  std::string text;  // "float[batch,576]": with the names of symbolic dimensions
};

struct LoopReport {
  std::string path;        // "decode/attend"
  int64_t iterations = 0;  // of the last time it ran
  std::string driven;      // "device" or "host"
  std::string reason;      // why that way
};

}  // namespace eddy
