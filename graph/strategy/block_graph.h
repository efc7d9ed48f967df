// BlockGraph: the task graph of an operator graph under a strategy, made of blocks that are
// replaced as wholes when configurations change.
//
// A block is what task_emitter.h emits at once: an operator's parts, one of its inputs, the rings
// of a group. Its tasks have consecutive slots behind all slots there were, so that a transaction
// is undone by cutting the arrays off where it began. Blocks that go leave their slots behind;
// once those are many, wants_rebuild() says so and reset() makes all anew.
//
//   graph.reset(strategy);
//   if (graph.change(ops, config, limit)) {...}  // any number of changes,
//   graph.commit();                              // or rollback()
//
// Dependencies that leave a task of an input or a ring stay within the block or lead to parts, and
// are laid out once. Those that leave a part lead into neighbouring blocks: they are laid out
// anew, behind all others, whenever one of these is replaced.
//
// The loads say how long each simulated device is busy: the largest is a lower bound of the
// makespan. change() looks at it after every block and gives up as soon as it is above the limit,
// with parts first, rings next and transfers last, so that most changes that do not pay cost the
// emission of a few blocks. Loads are sums of doubles in the order of history: compare them with
// kLoadRounding in mind.
//
// Errors: those of task_emitter.h, in status(); rollback() clears it. Contract: every
// configuration passed check_config(); after a change() that gave up, or an error, only rollback()
// may follow. Threads: none.
// Cost: change() O(tasks and dependencies of the blocks replaced + dependencies that leave their
// neighbours' parts); commit() and rollback() O(blocks + tasks relinked); memory 40 bytes a task,
// 4 a dependency and 8 to 16 more for those between blocks.
// Source: Jia, Zaharia, Aiken, "Beyond Data and Model Parallelism for Deep Neural Networks",
// section 5.3, where a change replaces an operator's tasks.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "graph/analysis/dag.h"
#include "graph/strategy/strategy.h"
#include "graph/strategy/task_emitter.h"

namespace eddy {

// Half a cache line. Of its successors the first num_alone, by ascending rank, wait for nothing
// else: they are ready together, when the task ends.
struct BlockTask {
  double exe_time;
  uint32_t device;
  uint32_t rank;
  uint32_t first_successor;  // in BlockGraph::successors()
  uint32_t num_successors;
  uint32_t num_alone;
  bool waits_alone;  // for one task, whatever is replaced
};
static_assert(sizeof(BlockTask) == 32);

class BlockGraph {
 public:
  // Relative; more than the errors of adding and subtracting loads between two reset() can be.
  static constexpr double kLoadRounding = 1e-7;
  static constexpr uint32_t kMaxSlots = 1u << 31;

  // Slots first .. first + count - 1, and what crosses the block's border.
  struct Block {
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t first_out = 0;  // in outs(): dependencies from parts
    uint32_t num_out = 0;
    uint32_t first_in = 0;  // in ins(): slots of other blocks that wait for this one
    uint32_t num_in = 0;
  };

  // Borrows both.
  BlockGraph(const OperatorGraph& graph, const Topology& topology);

  // Labels of slots; only after keep_labels(), which comes before reset().
  void keep_labels() { keeps_labels_ = true; }
  const TaskLabel& label(uint32_t slot) const { return labels_[slot]; }

  Status reset(Strategy strategy);
  // These operators, each once, get this configuration. False: gave up, since some device is
  // busy for longer than `limit`.
  bool change(std::span<const uint32_t> ops, const OperatorConfig& config,
              double limit = std::numeric_limits<double>::infinity());
  void commit();
  void rollback();
  bool wants_rebuild() const;

  const Strategy& strategy() const { return strategy_; }
  const Status& status() const { return emitter_.status(); }
  uint32_t num_slots() const { return static_cast<uint32_t>(tasks_.size()); }  // dead ones too
  uint32_t num_tasks() const { return num_slots() - num_dead_; }
  const std::vector<BlockTask>& tasks() const { return tasks_; }
  const std::vector<uint32_t>& num_predecessors() const { return num_predecessors_; }
  const std::vector<uint32_t>& successors() const { return successors_; }
  const std::vector<double>& loads() const { return loads_; }  // by simulated device
  const std::vector<Block>& blocks() const { return blocks_; }
  std::span<const Edge> outs(const Block& block) const {
    return {outs_.data() + block.first_out, block.num_out};
  }
  std::span<const uint32_t> ins(const Block& block) const {
    return {ins_.data() + block.first_in, block.num_in};
  }

  // Of the transaction: slots from here on are new; blocks replaced, and what they were.
  uint32_t first_new_slot() const { return marks_.tasks; }
  const std::vector<uint32_t>& changed_blocks() const { return changed_; }
  const std::vector<Block>& original_blocks() const { return originals_; }

 private:
  enum class Kind { kParts, kInput, kRings };
  struct BlockName {
    Kind kind;
    uint32_t op = 0;  // or the group
    uint32_t input = 0;
  };
  struct Marks {
    uint32_t tasks = 0;
    uint32_t successors = 0;
    uint32_t outs = 0;
    uint32_t ins = 0;
  };
  struct Links {  // of one part, before it was relinked
    uint32_t slot;
    uint32_t first_successor;
    uint32_t num_successors;
    uint32_t num_alone;
  };
  struct Sink;

  uint32_t parts_block(uint32_t op) const { return first_block_[op + 1] - 1; }
  uint32_t index_of(const BlockName& name) const;
  void mark_ends();
  void find_blocks(std::span<const uint32_t> ops);
  void remove(uint32_t index);
  void emit(const BlockName& name);
  void lay_out(Block& block, bool has_parts);
  void lay_out_rows(const Block& block);
  bool emit_blocks(double limit);
  void find_neighbours(std::span<const uint32_t> ops);
  void find_adjacent(uint32_t op);
  void count_links();
  void relink();
  bool is_sorted_alone(const BlockTask& task) const;
  void forget();

  const OperatorGraph& graph_;
  TaskEmitter emitter_;
  Strategy strategy_;
  std::vector<uint32_t> first_block_;  // by operator: its inputs, then its parts; then groups
  std::vector<std::vector<BlockName>> readers_;  // by operator
  bool keeps_labels_ = false;
  std::vector<TaskLabel> labels_;

  std::vector<BlockTask> tasks_;
  std::vector<uint32_t> num_predecessors_;
  std::vector<uint32_t> successors_;
  std::vector<Edge> outs_;
  std::vector<uint32_t> ins_;
  std::vector<Block> blocks_;
  std::vector<double> loads_;
  double peak_ = 0;  // of the loads, while a change is emitted
  uint32_t num_dead_ = 0;
  size_t rebuilt_successors_ = 0;  // how many there were after reset()

  // Of one change.
  std::vector<BlockName> names_;    // to be replaced, in the order of emission
  std::vector<bool> is_found_;      // by block; false between uses
  std::vector<Edge> edges_;         // of the block being emitted
  std::vector<uint32_t> relinked_;  // operators
  std::vector<bool> is_relinked_;   // by operator; false between uses
  std::vector<uint32_t> adjacent_;  // blocks
  std::vector<uint32_t> cursors_;   // by slot; kNoSlot but for parts being relinked

  // Of the transaction.
  Marks marks_;
  std::vector<uint32_t> changed_;  // blocks
  std::vector<Block> originals_;   // by place in changed_
  std::vector<bool> is_changed_;   // by block
  std::vector<Links> saved_links_;
  std::vector<double> saved_loads_;
  std::vector<std::pair<uint32_t, OperatorConfig>> saved_configs_;
  std::vector<std::pair<uint32_t, PartSlots>> saved_slots_;
  uint32_t saved_num_dead_ = 0;
};

}  // namespace eddy
