// Descriptions of a session: its inputs and outputs, which nodes read inputs on the host, and how
// its loops and branches are driven. Internal to runtime/api; part of make_session_core.
//
// Errors: kUnsupported for a loop that cannot be driven as the options force it to be. Threads:
// that which makes the session. Cost: O(nodes + values).
#pragma once

#include "runtime/api/session_core.h"

namespace eddy {

// Of a graph as it will run, placed and planned.
void describe_values(SessionCore& core);
// Of a program.
Status describe_loops(SessionCore& core);

}  // namespace eddy
