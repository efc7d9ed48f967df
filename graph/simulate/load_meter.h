// LoadMeter: how long each device and link is busy under a strategy, kept up to date while
// operators change; the largest is a lower bound of the makespan that needs no simulation.
//
// A search asks it first: most changes that do not pay put so much work on some device or link
// that the bound alone is above the threshold, and nothing has to be edited or simulated. The
// bound is lowered by a millionth, more than rounding can add up to, so that it never rejects what
// a complete simulation accepts.
//
// What each block adds to each device is kept, so that a change subtracts its old blocks at a
// glance and emits only the new ones: parts first, then rings, then transfers, until the bound is
// above the threshold.
//
// Errors: a change that cannot be emitted (task_emitter.h) has the bound 0: the simulation says
// what is wrong. Threads: none. Cost: try_change() O(devices + tasks of the new blocks), without
// any memory for tasks. Memory: 16 bytes for each block and device it works on.
#pragma once

#include <vector>

#include "graph/simulate/strategy.h"
#include "graph/simulate/task_emitter.h"

namespace eddy {

class LoadMeter {
 public:
  // Borrows both.
  LoadMeter(const OperatorGraph& graph, const Topology& topology);

  void reset(const Strategy& strategy);
  // The bound after these operators, each once, got this configuration; or, where it is above the
  // threshold, any bound that is. One that is not may be made so by keep().
  double try_change(const std::vector<uint32_t>& ops, const OperatorConfig& config,
                    double threshold);
  void keep();

 private:
  struct Load {
    uint32_t device = 0;
    double time = 0;
  };
  using BlockLoads = std::vector<Load>;
  // Of a block: the parts of an operator, one of its inputs, or the rings of a group.
  enum class Kind { kParts, kRings, kInput };
  struct Block {
    Kind kind;
    uint32_t op = 0;  // or the group
    uint32_t input = 0;
  };
  struct Sink;

  uint32_t index_of(const Block& block) const;
  void find_blocks(const std::vector<uint32_t>& ops);
  void emit(const Block& block, BlockLoads& loads);
  bool emit_blocks(double threshold);
  void swap_changed();

  const OperatorGraph& graph_;
  TaskEmitter emitter_;
  Strategy strategy_;  // as of the last reset() or keep(); within try_change() the changed one
  std::vector<uint32_t> first_block_;        // by operator: its inputs, then its parts; then groups
  std::vector<std::vector<Block>> readers_;  // by operator
  std::vector<BlockLoads> block_loads_;      // by block
  std::vector<double> load_;                 // by simulated device
  uint32_t num_kept_ = 0;                    // since the loads were last added up anew

  // Of the last try_change().
  std::vector<uint32_t> ops_;
  std::vector<OperatorConfig> other_configs_;  // by place in ops_: the changed ones
  std::vector<PartSlots> other_slots_;         // likewise
  std::vector<Block> blocks_;
  std::vector<BlockLoads> new_loads_;  // by place in blocks_
  std::vector<bool> is_found_;         // by block; false outside find_blocks()
  std::vector<double> tried_;
  double peak_ = 0;  // of tried_

  std::vector<double> sums_;  // by device; of one block, else 0
};

}  // namespace eddy
