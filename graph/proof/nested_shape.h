// find_malformed: what is wrong with the shape of nested commands, before anything follows them.
//
// Every id names something that is there; each loop and branch stands in one region and each region
// in one loop or branch, none inside itself and none deeper than kMaxDepth; each region begins with
// its entry and ends with its exit, on one stream; waits for the iteration before stand in open
// loops only. A list that passes can be followed without looking at ids again.
//
// Part of the nested proof. Errors: none. Cost: near linear.
#pragma once

#include <optional>

#include "graph/proof/nested_command.h"
#include "graph/proof/nested_violation.h"

namespace eddy {

inline constexpr uint32_t kMaxNestedDepth = 1000;

// None: well formed.
std::optional<NestedViolation> find_malformed(const NestedCommands& commands);

}  // namespace eddy
