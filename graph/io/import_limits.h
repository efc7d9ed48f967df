// ImportLimits: what a file may ask of Eddy before it is refused with kResourceExhausted.
//
// Parsed structures are proportional to the file (each message costs at most a few hundred bytes,
// and messages are counted), so these bound time and memory for any input.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eddy {

struct ImportLimits {
  uint64_t max_file_bytes = uint64_t{1} << 36;  // of the model or of one external file: 64 GiB
  int max_nesting = 64;                         // graphs in graphs, types in types, calls in calls
  int64_t max_nodes = 1'000'000;                // nodes and calls, after inlining functions
  int64_t max_messages = 8'000'000;             // protobuf messages in the file
  int64_t max_elements = int64_t{1} << 36;      // of one tensor
  size_t max_name_bytes = 16 * 1024;            // one name of a value, node, operator or symbol
};

}  // namespace eddy
