// StrategySimulation: an operator graph under a strategy, with its timeline, and changes of
// operators' configurations that bring both forward at the cost of what they touch.
//
//   StrategySimulation simulation(graph, topology);
//   EDDY_RETURN_IF_ERROR(simulation.reset(strategy));
//   simulation.change(op, config);                        // any number of changes,
//   EDDY_ASSIGN_OR_RETURN(auto end, simulation.simulate(threshold));  // then the new timeline,
//   if (...) simulation.commit(); else simulation.rollback();
//
// A change replaces the operator's parts, the transfers to and from it, and the gradient rings of
// its weights (block_graph.h); everything else stays, and what was ready before the change can
// matter keeps its times (block_timeline.h). Ranks belong to blocks and not to history
// (task_emitter.h), so the times are those of building the new strategy anew and simulating it in
// full, bit for bit.
//
// Errors: those of task_emitter.h, from reset() and simulate(); after a failed simulate() only
// rollback() may follow. Contract: no change between simulate() and commit() or rollback().
// Threads: none. Cost: change() and simulate() see block_graph.h and block_timeline.h; commit()
// now and then makes everything anew, at the cost of reset().
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "graph/strategy/tasks/block_graph.h"
#include "graph/strategy/tasks/block_timeline.h"
#include "graph/strategy/tasks/strategy_snapshot.h"

namespace eddy {

class StrategySimulation {
 public:
  // Borrows both.
  StrategySimulation(const OperatorGraph& graph, const Topology& topology)
      : blocks_(graph, topology) {}

  // snapshot() has labels; comes before reset().
  void keep_labels() {
    blocks_.keep_labels();
    has_labels_ = true;
  }

  Status reset(Strategy strategy);
  const Strategy& strategy() const { return blocks_.strategy(); }
  double makespan() const { return timeline_.makespan(); }
  uint32_t num_tasks() const { return blocks_.num_tasks(); }

  void change(uint32_t op, const OperatorConfig& config) { change(std::span(&op, 1), config); }
  // All of them, each once, to the same one: what several have in common is replaced once. False:
  // no timeline of the changed strategy is within the limit, and only rollback() may follow.
  bool change(std::span<const uint32_t> ops, const OperatorConfig& config,
              double limit = std::numeric_limits<double>::infinity()) {
    return blocks_.change(ops, config, limit);
  }
  // kDone, or kExceeds when the makespan is above the threshold.
  Result<SimulationEnd> simulate(double threshold = std::numeric_limits<double>::max());
  void commit();
  void rollback();

  StrategySnapshot snapshot() const;

 private:
  BlockGraph blocks_;
  BlockTimeline timeline_;
  bool has_labels_ = false;
};

}  // namespace eddy
