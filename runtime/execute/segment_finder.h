// find_segment: the segment (segment.h) that begins at a command, if it is worth one.
//
// Strands that are forked inside are walked by turns, so that a record comes before the waits for
// it. The segment ends at the last point at which every strand forked inside has ended and been
// waited for; from there the buffer goes on as always.
//
// Contract: an event that is recorded inside has been reset inside, as lowering does where a region
// is entered, so nobody outside waits for it. Events of open loops are waited for by strands that
// go on from one iteration to the next: their resets are noted as apart, and a segment ends before
// one. Cost: O(commands of the segment), at most
// kMostSteps.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runtime/execute/segment.h"

namespace eddy {

// What a recorded buffer's commands are, by command.
struct CommandNote {
  bool is_apart = false;                   // a reset
  bool is_known = false;                   // a launch
  bool is_nothing = false;                 // a known launch that a segment leaves out
  RecordableWork* work_or_null = nullptr;  // known and null: it keeps the host's books
};

struct SegmentSource {
  const std::vector<CommandCode::Command>& code;
  const std::vector<uint32_t>& strand_entries;
  const std::vector<CommandNote>& notes;
  // Whether a strand's stream is one of the recorder's device.
  std::function<bool(uint32_t strand)> is_recordable;
};

struct FoundSegment {
  std::vector<SegmentStep> steps;
  uint32_t next = 0;
};

std::optional<FoundSegment> find_segment(const SegmentSource& source, uint32_t at, uint32_t strand);

}  // namespace eddy
