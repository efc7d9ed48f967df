// ProgramViolation: one thing that the proof (program_proof.h) finds wrong with a program, as
// data, and as one line for people.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "graph/program/validate.h"

namespace eddy {

struct ProgramViolation {
  enum class Kind {
    kUnordered,       // first, second: nodes with no path between; name: what both touch
    kUnorderedBytes,  // the same, over arena bytes that belong to `name`
    kSharedStream,    // the same, over a stream that `second` or `first` needs for itself
    kSharedEvent,     // `first` and `second`, or the region and `second`, use one event at once
    kOverwritten,     // first reads `name`, whose place second may have written
    kOverlap,         // first reads or writes bytes of `name` that it also writes
    kBadBlock,        // name: its blocks lie outside their arena, off alignment, or are too few
    kEscapes,         // first (or the graph's end) keeps arena memory of `name`
    kMalformed,       // text names it
  };
  static constexpr uint32_t kNone = UINT32_MAX;  // as a node: the region's entry, exit, or the end

  Kind kind = Kind::kMalformed;
  uint32_t region = 0;
  uint32_t first = kNone;
  uint32_t second = kNone;
  uint32_t name = kNone;
  std::string text;

  // One line; `node_name` and `value_name` turn ids into what people know them by.
  std::string to_string(const std::function<std::string(uint32_t)>& node_name,
                        const std::function<std::string(uint32_t)>& value_name) const;
};

// What the validator found, as a violation.
ProgramViolation as_violation(ProgramDefect defect);

}  // namespace eddy
