// plan_graph: a plan for every region of a graph. prove_plan: the proof without which nothing
// runs.
//
// Each region is planned as a bare DAG (region_dag): issue order by rank, streams by the chosen
// policy, waits where streams meet. With `is_auto` a region gets one stream unless work worth
// min_parallel_ns would overlap: a hand-off between threads costs tens of microseconds.
//
// Errors: prove_plan returns kInternal with the counter-example. Cost: that of the policies.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/schedule/plan.h"
#include "graph/schedule/stream_assignment.h"

namespace eddy {

struct PlanOptions {
  AssignPolicy policy = AssignPolicy::kRank;
  bool is_auto = true;             // serial where parallel does not pay
  uint32_t max_streams = 0;        // hard cap; 0: none
  double min_parallel_ns = 60'000; // estimated work that must overlap
};

Plan plan_graph(const Graph& graph, const PlanOptions& options);

// Checks every region's commands against the region's dependences and, on success, marks the
// plan as proved.
Status prove_plan(const Graph& graph, Plan& plan);

}  // namespace eddy
