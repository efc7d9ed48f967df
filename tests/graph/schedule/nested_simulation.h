// A slow, plain machine that runs nested commands in a random legal order of completion, with
// random decisions, and looks into the memory: every byte of an arena remembers which instance of
// which name was written to it last.
//
// A launch takes time: it starts, others may go on, it ends. What it reads must be intact from
// its start to its end; what it writes is lost for others from its start on.
//
// Iterations follow each other, also those of open loops; that these may overlap is tried on the
// virtual device, under the eyes of a race checker (tools/check).
#pragma once

#include <cstdint>
#include <string>

#include "graph/proof/nested_command.h"

namespace eddy {

// Empty, or what went wrong. `decisions` and `order` are seeds.
std::string simulate_nested(const NestedCommands& commands, uint64_t seed);

}  // namespace eddy
