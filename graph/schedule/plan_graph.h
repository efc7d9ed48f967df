// plan_graph: a plan for every region of a graph. prove_plan: the proof without which nothing
// runs.
//
// Each region is planned as a bare DAG (region_dag): issue order by rank, streams by the chosen
// policy, waits where streams meet. With `is_auto` a region gets one stream unless work worth
// min_parallel_ns would overlap, and min_ns_a_stream for each stream: a hand-off between threads
// costs tens of microseconds; on one device also min_ns_a_wait for each wait.
//
// Regions are planned from the outside in. A body's stream 0 is its control node's: of matching's
// chains, or those of several devices, the one with which entry and exit need the fewest waits
// (boundary_waits.h); of a loop's `after`, one that ends with what the next iteration needs
// (carried_first.h). Its further streams are the lowest-numbered that no other region may use while
// it runs, so branches, the regions of one loop and loops that follow each other share them. (Where
// a tail of `after` may go on beside the next `before`, these two share none, unless there is a
// cap.) The cap holds for the whole plan.
//
// Several devices: an exec node stands on a stream of the device that Node::device names, a control
// node on one of the first accelerator that any node inside is on, else of the CPU. The cap holds
// for each device; a region has a stream of each of its devices all the same.
//
// Errors (kInternal): of prove_plan the counter-example (program_proof.h), of both the node that is
// launched elsewhere or stands on another device's stream. Cost: that of the policies, and of
// plan_memory.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/schedule/costs/cost_table.h"
#include "graph/schedule/memory/plan_memory.h"
#include "graph/schedule/plan/plan.h"
#include "graph/schedule/plan/schedule.h"
#include "graph/schedule/streams/stream_assignment.h"

namespace eddy {

struct PlanOptions {
  AssignPolicy policy = AssignPolicy::kRank;
  bool is_auto = true;       // serial where parallel does not pay
  uint32_t max_streams = 0;  // hard cap, over all regions, for each device; 0: none
  // Names of devices, the host's CPU first; empty: there is one and names mean nothing.
  std::vector<std::string> devices = {};
  // With `devices`: where each value's memory is, by ValueId (graph/compile/place.h).
  std::vector<uint32_t> value_devices = {};
  double min_parallel_ns = 60'000;  // work that must overlap, by the costs below
  double min_ns_a_stream = 2'000;   // and so much for each stream: waits cost, too
  double min_ns_a_wait = 500;       // likewise; both threads are awake
  // By NodeId: whether all workers share a call of the node, so that it overlaps with nothing.
  // Empty: none is shared.
  std::vector<bool> splits = {};
  // What operators were measured to cost; null, and what the table lacks: estimates (cost_model.h).
  const CostTable* costs_or_null = nullptr;
  bool rank_by_costs = false;   // longest chain by cost, not by number of nodes
  bool lays_out_memory = true;  // a plan without memory is for looking at, not for running
  MemoryOptions memory = {};
};

Plan plan_graph(const Graph& graph, const PlanOptions& options);

// What plan_graph makes its program from (schedule.h); for those that look at single passes.
Schedule schedule_graph(const Graph& graph, const PlanOptions& options);

// What needs no proof: each node is launched once, in its region, on a stream of its device.
Status check_plan(const Graph& graph, const Plan& plan);

// Checks the plan, then proves streams, synchronisations and memory of all regions together and, on
// success, marks the plan as proved.
Status prove_plan(const Graph& graph, Plan& plan);

}  // namespace eddy
