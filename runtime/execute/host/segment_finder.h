// find_segment: the segment (segment.h) that begins at a command, if it is worth one.
//
// Strands that rest, and that an event recorded inside wakes, are walked by turns, so that a record
// comes before the waits for it. The segment ends at the last point at which every such strand
// rests again and has been waited for; from there the strand goes on as always.
//
// Contract: an event that is recorded inside is one of a round that begins inside, so no strand
// outside waits for that record. Rounds that overlap (StrandCode::Round) end a segment. Cost:
// O(commands of the segment), at most kMostSteps.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runtime/device/strand_runner.h"
#include "runtime/execute/host/segment.h"

namespace eddy {

struct SegmentSource {
  const StrandCode& code;
  const Bindings& bindings;
  // Whether a strand's stream is one of the capture's device.
  std::function<bool(uint32_t strand)> is_recordable;
};

struct FoundSegment {
  std::vector<SegmentStep> steps;
  uint32_t next = 0;
};

std::optional<FoundSegment> find_segment(const SegmentSource& source, uint32_t at, uint32_t strand);

}  // namespace eddy
