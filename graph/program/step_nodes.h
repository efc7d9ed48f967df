// StepNodes: for each record and wait of a block, the node that it stands behind or before, for
// pictures, reports and messages.
//
// A record stands behind the latest node, retain or row of its stream; a wait before the next one.
// None: a record of the block's begin, or a wait for the block's end.
//
// Cost: O(steps).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program/program.h"

namespace eddy {

// By step of the block: an index into its steps; Program::kNone: there is none.
std::vector<uint32_t> find_step_nodes(const Program::Block& block);

}  // namespace eddy
