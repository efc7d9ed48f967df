// expand_graph: the tasks and transfers of a graph with loops and branches (scenario.h), of the
// graph and the table beside it (graph_costs.h).
//
// Within one region, operators become tasks and transfers as in task_emitter.h. A loop or case
// waits for every operator outside that it or its operators read; what reads it waits for it as a
// whole. What crosses the border of a region crosses links where it must, each part by what of it
// is read:
//
//   into a loop       once, before it begins: values from outside stay the same
//   into a branch     after its decision, and only where it is taken; likewise what a loop's
//                     `after` reads of its `before`, in each turn; of what a branch made, see below
//   carried in a loop the first one once, before it begins; the next one at the end of each turn,
//                     also of the last, since the decision comes later; of values that pass
//                     through several carried ones, what the others begin with is not sent
//   out of a loop     after its last decision: the tiles of its result; where a branch made that,
//                     those of the one taken last, which all parts of the reader wait for
//   out of a branch   at its end, inside it: the tiles of the result of the branch taken
//
// What an operator reads twice alike, by whichever names, crosses once; so does what it reads of a
// turn and then carried of the turn before, unless it is in a branch. README.md says what the
// result of a region is, and which memory is counted.
//
// Errors (invalid argument): those of task_emitter.h; no link between two devices that must talk;
// memory over a device's limit. Resource exhausted: more than kMaxRegionTransfers
// (region_transfers.h). Threads: pure. Cost: linear in the tasks and transfers of each region.
#pragma once

#include "graph/base/status.h"
#include "graph/strategy/scenarios/graph_costs.h"

namespace eddy {

Result<ScenarioRegion> expand_graph(const Graph& graph, const GraphCosts& costs,
                                    const Topology& topology);

}  // namespace eddy
