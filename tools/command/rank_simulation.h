// eddy simulate MODEL --ranks N: when each rank of a model that communicates ends, and which
// operation between ranks that hangs on. No MPI is needed.
//
// Each rank has the plan that it would run (rank_plan.h), whose kernels take what --costs has
// measured on one thread, or estimates; operations take what --links says (rank_links.h). One run,
// with the decisions that the costs tell of (rank_tasks.h).
//
//   simulated: 1.2 ms on 2 ranks
//   rank 0: ends at 1.2 ms, computes 0.8 ms, waits 0.1 ms for others and 0.3 ms for operations
//   critical: sum (AllReduce): 0.3 ms of the critical path, in 16 operations
//   most waited for: sum (AllReduce): 0.1 ms, for rank 1 in 15 of 16
#pragma once

#include "tools/command/console.h"
#include "tools/command/simulate.h"

namespace eddy {

// Refuses ranks whose operations would mix up or deadlock.
Outcome simulate_over_ranks(const SimulateArguments& arguments, Console& console);

}  // namespace eddy
