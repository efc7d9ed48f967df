// gather_at_first, spread_from_first: what each rank has made, handed to rank 0, or what rank 0
// has, handed to all; and one status on all ranks.
//
//   EDDY_ASSIGN_OR_RETURN(const auto parts, gather_at_first(*world, own, bytes));
//   // on rank 0: parts[r] is rank r's; elsewhere empty
//   EDDY_ASSIGN_OR_RETURN(const std::string all, spread_from_first(*world, own, bytes));
//   // on every rank: rank 0's bytes
//
// For ranks that have worked apart: they wait until the last has come, and leave a processor that
// they share with it. All ranks call them the same number of times, in the same order as they make
// sessions. They go by messages (transport.h): for inputs and outputs, not for what moves in each
// turn of a loop.
//
// Errors, the same on all ranks: `own` of the lowest rank where it is not ok, which the status
// names; device_lost where the world is. Threads: one at a time,
// and no run of the world's sessions meanwhile.
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"
#include "runtime/net/world.h"

namespace eddy {

Result<std::vector<std::string>> gather_at_first(World& world, const Status& own,
                                                 std::string bytes);
// `bytes` of other ranks are not read.
Result<std::string> spread_from_first(World& world, const Status& own, std::string bytes);

}  // namespace eddy
