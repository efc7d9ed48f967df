// Happens-before: an independent proof that a command list keeps every required order.
//
// It reads the commands alone, does not depend on how they were planned, and shares no code with
// the planner but graph/base and command.h. A plan is proved when each required pair (before,
// after) is connected by a path of: consecutive commands of one stream, a record to a wait that
// names it, and joint launches. Otherwise the proof holds counter-examples.
//
// Also a violation, because devices let it pass in silence: a wait whose event is not recorded
// earlier in the list (it would count as complete), an event recorded twice, a node launched
// twice (other than jointly) or never, an id out of range.
//
// Idea: most pairs share a stream or stand one wait apart. The rest: with few streams, vector
// clocks, 16 streams at a time; with many, a short backward search first, and for what it leaves
// clocks or, where streams are short, marks for 512 commands at a time. All are exact.
//
// Errors: none; a malformed list is an unsafe one. At most kMaxViolations are kept.
// Cost: O(commands * min(streams / 16, nodes / 512)) at worst; near linear with few streams or
// sparse graphs. Memory: 24 bytes a command and 64 bytes an event.
#pragma once

#include <cstdint>
#include <span>

#include "graph/program/program.h"
#include "graph/proof/order_violation.h"

namespace eddy {

// Node `before` must have ended when node `after` starts.
struct RequiredOrder {
  uint32_t before;
  uint32_t after;
};

Proof prove_order(uint32_t num_nodes, std::span<const Program::Step> commands,
                  std::span<const RequiredOrder> required);

}  // namespace eddy
