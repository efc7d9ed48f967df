// find_segment: the segment (segment.h) that begins at a command, if it is worth one.
//
// Strands that rest, and that an event recorded inside wakes, are walked by turns, so that a record
// comes before the waits for it. The segment ends at the last point at which every such strand
// rests again and has been waited for; from there the strand goes on as always.
//
// Contract: no strand outside waits for an event that is recorded inside: either its round begins
// inside, or all waits for it are inside, too (work of the host may stand between a round's begin
// and its first event). Rounds that overlap (StrandCode::Round) end a segment. Cost: O(commands of
// the segment), at most kMostSteps.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runtime/device/strand_runner.h"
#include "runtime/execute/host/segment.h"

namespace eddy {

// By event: how many commands wait for it.
std::vector<uint32_t> count_waits(const StrandCode& code);

struct SegmentSource {
  const StrandCode& code;
  const std::vector<uint32_t>& num_waits;  // count_waits
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
