// ImportLimits: what a file may cost Eddy before it is refused with kResourceExhausted.
//
// Counts bound time; memory is charged before it is allocated, in proportion to the file
// (memory_budget.h), so that a hundred bytes cannot request gigabytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eddy {

struct ImportLimits {
  uint64_t max_file_bytes = uint64_t{1} << 36;  // of the model or of one external file: 64 GiB
  int max_nesting = 64;                         // graphs in graphs, types in types, calls in calls
  int64_t max_nodes = 1'000'000;                // nodes and calls, after inlining functions
  int64_t max_messages = 8'000'000;             // protobuf messages in the file
  size_t max_opsets = 1024;                     // domains that a model or one function imports
  int64_t max_elements = int64_t{1} << 36;      // of one tensor
  size_t max_name_bytes = size_t{16} << 10;     // one name of a value, node, operator or symbol
  uint64_t min_memory_bytes = uint64_t{64} << 20;  // what the smallest file may take
  uint64_t memory_per_file_byte = 24;              // and each byte of it more
  uint64_t max_memory_bytes = uint64_t{1} << 38;   // but never more than this: 256 GiB
};

}  // namespace eddy
