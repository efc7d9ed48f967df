// Scenarios: what a graph with loops and branches costs when it is not known how often a loop runs
// and which branch is taken; never one run at the mean. SCENARIOS.md has the rules and an example.
//
// A ScenarioRegion holds tasks, loops and cases, with dependencies within the region. One scenario
// settles every decision; expand_scenario() writes the run out as plain tasks, whose makespan the
// full simulation computes. evaluate_scenarios() does so for all scenarios with their probabilities
// where they are few, else for seeded samples by common random numbers (README.md, Law chapter 11).
//
//   loop: regions before and after, each maybe empty. before runs, then the decision; if it is to
//         go on, after runs, then before again. With n trips: n + 1 decisions, n runs of after. A
//         dependent of the loop waits for its last decision.
//   case: one region a branch, maybe empty. The decision, then the branch.
//   follow: one region for each branch of a case that stands before it, at any depth: what follows,
//         outside the case's loop, from the branch that it took last. Runs that branch's region
//         without a decision; nothing where the innermost loop around the case did not reach it.
//
// A decision is a task on `decision.device` of `decision.time`: the readback of the predicate and
// the next launch where the host drives, 0 where the device does. Nothing of an iteration or branch
// starts before its decision has ended. Its `distribution` lists values (trips, branches) with
// probabilities, drawn anew each time; its `trace` records successive values, run after run.
//
// Threads: pure. Errors, and the cost: at evaluate_scenarios().
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/simulate/scenario_region.h"
#include "graph/simulate/task_graph.h"

namespace eddy {

// Errors (invalid argument; each names the entry): dependency out of range or in a cycle, no or
// both of distribution and trace, probability that is negative or not finite or a sum that is not
// 1 (within 1e-6), negative trips, branch out of range, times not valid, regions of wrong number,
// two loops or cases of one name, a follow of no case before it, a trace without one whole run.
// Resource exhausted: a scenario longer than the limit. Cancelled: should_stop returned true.
// Cost: scenarios * (tasks + edges of each).
Result<ScenarioReport> evaluate_scenarios(const ScenarioRegion& root,
                                          const ScenarioOptions& options = {});

// One scenario written out, for drawing and printing.
struct ExpandedScenario {
  TaskGraph<double> graph;         // ranks in the order of expansion
  std::vector<std::string> names;  // by slot: "decode[3]/attend", decisions "decode[3]?"
  std::vector<bool> is_decision;   // by slot
};

// The first scenario of the record where there is one, else sample 0 of the seed.
Result<ExpandedScenario> expand_scenario(const ScenarioRegion& root,
                                         const ScenarioOptions& options = {});

}  // namespace eddy
