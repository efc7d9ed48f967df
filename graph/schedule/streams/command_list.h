// The command list: a plan as the flat sequence of commands that the host issues (command.h).
//
// For each node in issue order: its waits on its first stream, its launches on all of its
// streams, its record on its first stream.
// Cost: O(nodes + waits).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/program/program.h"
#include "graph/schedule/streams/stream_assignment.h"
#include "graph/schedule/streams/sync_plan.h"

namespace eddy {

std::vector<Program::Step> command_list(std::span<const uint32_t> issue_order,
                                        const StreamAssignment& assignment, const SyncPlan& plan);

}  // namespace eddy
