// StrategySimulation: an operator graph under a strategy, with its timeline, and changes of
// operators' configurations that bring both forward at the cost of what they touch.
//
//   StrategySimulation simulation(graph, topology);
//   EDDY_RETURN_IF_ERROR(simulation.reset(strategy));
//   simulation.change(op, config);                        // any number of changes,
//   EDDY_ASSIGN_OR_RETURN(auto end, simulation.simulate(threshold));  // then the new timeline,
//   if (...) simulation.commit(); else simulation.rollback();
//
// A change rebuilds the operator's parts, the transfers to and from it, and the gradient rings of
// its weights; everything else stays. Ranks belong to blocks and not to history
// (task_emitter.h), so the times are those of building the new strategy anew and simulating it in
// full, bit for bit.
//
// Errors: those of task_emitter.h, from reset() and simulate(); after a failed simulate() only
// rollback() may follow. Contract as DeltaSimulation: no change between simulate() and commit() or
// rollback(). Threads: none.
// Cost: change() O(tasks of the blocks rebuilt); simulate() as DeltaSimulation.
#pragma once

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "graph/simulate/delta_simulation.h"
#include "graph/simulate/task_emitter.h"

namespace eddy {

class StrategySimulation {
 public:
  // Borrows both.
  StrategySimulation(const OperatorGraph& graph, const Topology& topology);

  Status reset(Strategy strategy);
  const Strategy& strategy() const { return strategy_; }
  double makespan() const { return delta_.makespan(); }
  const DeltaSimulation<double>& delta() const { return delta_; }

  // Labels of live slots; only after keep_labels(), which comes before reset().
  void keep_labels() { keeps_labels_ = true; }
  const TaskLabel& label(uint32_t slot) const { return labels_[slot]; }

  void change(uint32_t op, const OperatorConfig& config) { change(std::span(&op, 1), config); }
  // All of them, each once, to the same one: what several have in common is rebuilt once.
  void change(std::span<const uint32_t> ops, const OperatorConfig& config);
  // kDone, or kExceeds when the makespan is above the threshold.
  Result<SimulationEnd> simulate(double threshold = std::numeric_limits<double>::max());
  void commit();
  void rollback();

 private:
  // The tasks of one operator's parts, one input or one ring, and the dependencies it brings
  // between tasks of other blocks.
  struct Block {
    std::vector<uint32_t> tasks;
    std::vector<Edge> ties;
  };
  struct Input {
    uint32_t op = 0;
    uint32_t input = 0;
  };
  struct FirstSink;  // fills arrays, for reset()
  struct DeltaSink;  // edits the simulation

  uint32_t input_block(const Input& input) const { return first_block_[input.op] + input.input; }
  uint32_t parts_block(uint32_t op) const {
    return first_block_[op] + static_cast<uint32_t>(graph_.operators[op].inputs.size());
  }
  void find_blocks(std::span<const uint32_t> ops);
  void clear(uint32_t block);
  void fill_input(const Input& input);
  void change_parts(uint32_t op, const OperatorConfig& config);
  void replace_parts(uint32_t op);
  void update_parts(uint32_t op);
  void forget();

  const OperatorGraph& graph_;
  TaskEmitter emitter_;
  DeltaSimulation<double> delta_;
  Strategy strategy_;
  std::vector<Block> blocks_;          // by operator its inputs, then its parts; then groups
  std::vector<uint32_t> first_block_;  // by operator
  uint32_t first_group_ = 0;
  std::vector<std::vector<Input>> readers_;  // by operator
  bool keeps_labels_ = false;
  std::vector<TaskLabel> labels_;

  // Of one change: what to rebuild beside the parts.
  std::vector<Input> inputs_;
  std::vector<uint32_t> groups_;
  std::vector<bool> is_found_;  // by block; false outside find_blocks()

  // Of the transaction, for rollback.
  std::vector<std::pair<uint32_t, OperatorConfig>> saved_configs_;
  std::vector<std::pair<uint32_t, PartSlots>> saved_slots_;
  std::vector<std::pair<uint32_t, Block>> saved_blocks_;
};

}  // namespace eddy
