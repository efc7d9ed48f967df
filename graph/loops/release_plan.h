// plan_releases: after which node the memory of a value goes back to the pool.
//
// Values whose type is not fixed come from the pool. Such a value's memory may go once all its
// readers have run, by the order that the plan promises and not by position: on one stream that
// is the last reader; on several, the first node of the region that is ordered behind every reader
// (looked for among the nodes issued next). A reader inside a nested region counts as the control
// node that holds the region; a value of `before` that is forwarded may go in `after`.
//
// In the `after` of a pipelined loop (graph/schedule/plan/plan.h) only a reader releases, because
// only those are waited for.
//
// Never released: results of a region (they are moved on), values of fixed type (they keep their
// place from run to run), inputs and constants (borrowed), and values for which no node is found.
// Memory is shared by reference, so a release only ends this slot's claim.
//
// Only the order in which work functions return is promised. A device whose kernels go on after
// that orders reuse in its allocator.
// Cost: O(uses), and NodeOrder's for each region where a value may be released.
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/plan/plan.h"

namespace eddy {

// By NodeId: the values to release once the node has run.
using ReleasePlan = std::vector<std::vector<ValueId>>;

ReleasePlan plan_releases(const Graph& graph, const Plan& plan);

}  // namespace eddy
