// BlockGraph: the task graph of an operator graph under a strategy, made of blocks that are
// replaced as wholes when configurations change.
//
// A block is what task_emitter.h emits at once: an operator's parts, one of its inputs, the rings
// of a group. Its tasks, transfers and rows stand together behind all there were, so that a
// transaction is undone by cutting the arrays off where it began. Blocks that go leave their place
// behind; once that is much, wants_rebuild() says so and reset() makes all anew.
//
//   graph.reset(strategy);
//   if (graph.change(ops, config, limit)) {...}  // any number of changes,
//   graph.commit();                              // or rollback()
//
// What follows a task is kept with the block that joins the two, so replacing one touches nothing
// else (README.md). The loads say how long each simulated device is busy: the largest is a lower
// bound of the makespan. change() looks at it after every block and gives up as soon as it is above
// the limit. Loads are sums of doubles in the order of history: compare them with kLoadRounding in
// mind.
//
// Errors: those of task_emitter.h, in status(); rollback() clears it. Contract: every configuration
// passed check_config(); after a change() that gave up, or an error, only rollback() may follow.
// Threads: none. Cost: change() O(tasks and dependencies of the blocks replaced); commit() and
// rollback() O(parts of these blocks); memory 40 bytes a task, 24 a transfer, 4 another dependency.
// Source: Jia, Zaharia, Aiken, "Beyond Data and Model Parallelism for Deep Neural Networks",
// section 5.3, where a change replaces an operator's tasks.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "graph/strategy/operators/strategy.h"
#include "graph/strategy/tasks/task_emitter.h"

namespace eddy {

// A part, a sum, a hop of a ring, or a hop of a route with several.
struct BlockTask {
  double exe_time;
  uint32_t device;
  uint32_t rank;
  uint32_t list;  // of rows, in BlockGraph::lists()
  uint32_t row;   // in each of them
  uint32_t next;  // waits for it, too; kNoSlot: none
};
static_assert(sizeof(BlockTask) == 32);

// Over one link, between two tasks.
struct BlockTransfer {
  double exe_time;
  uint32_t device;
  uint32_t rank;
  uint32_t to;  // slot
  uint32_t row;
};
static_assert(sizeof(BlockTransfer) == 24);

// What a block joins to one task: transfers by ascending rank, and local dependencies. A local
// dependency is a slot, or kShard + a shard. One alone is the row's own.
struct BlockRow {
  uint32_t first_transfer = 0;
  uint32_t num_transfers = 0;
  uint32_t local_dep = 0;  // the first of several in BlockGraph::local_deps(), or itself
  uint32_t num_local_deps = 0;

  std::span<const uint32_t> local_deps(const uint32_t* all) const {
    return {num_local_deps == 1 ? &local_dep : all + local_dep, num_local_deps};
  }
};

// The rows of a task: row_bases()[place] + its row, for the places from `first` to `last`, with
// ascending ranks of transfers.
struct RowList {
  uint32_t first = 0;
  uint32_t last = 0;
};

// The parts that one device has of one slice: two hops wait for all of them. Where there is one
// part alone, these are local dependencies of its own.
struct RingShard {
  uint32_t out = kNoSlot;  // slots
  uint32_t in = kNoSlot;
  uint32_t num_parts = 0;
};

class BlockGraph {
 public:
  // Relative; more than the errors of adding and subtracting loads between two reset() can be.
  static constexpr double kLoadRounding = 1e-7;
  static constexpr uint32_t kMaxSlots = 1u << 31;  // and transfers, and shards
  static constexpr uint32_t kShard = kMaxSlots;

  struct Block {
    uint32_t first = 0;  // slots
    uint32_t count = 0;
    uint32_t first_transfer = 0;
    uint32_t num_transfers = 0;
    uint32_t first_row = 0;  // forward, then backward
    uint32_t num_forward = 0;
    uint32_t num_backward = 0;
    uint32_t first_shard = 0;
    uint32_t num_shards = 0;
    uint32_t first_in = 0;  // in ins()
    uint32_t num_in = 0;
  };
  // How many dependencies lead from a block to a task of another.
  struct Incoming {
    uint32_t slot;
    uint32_t count;
  };

  // Borrows both.
  BlockGraph(const OperatorGraph& graph, const Topology& topology);

  // Labels of slots and transfers; only after keep_labels(), which comes before reset().
  void keep_labels() { keeps_labels_ = true; }
  const TaskLabel& label(uint32_t slot) const { return labels_[slot]; }
  const TaskLabel& transfer_label(uint32_t transfer) const { return transfer_labels_[transfer]; }

  Status reset(Strategy strategy);
  // These operators, each once, get this configuration. False: gave up, since some device is busy
  // for longer than `limit`.
  bool change(std::span<const uint32_t> ops, const OperatorConfig& config,
              double limit = std::numeric_limits<double>::infinity());
  void commit();
  void rollback();
  bool wants_rebuild() const;

  const Strategy& strategy() const { return strategy_; }
  const Status& status() const { return emitter_.status(); }
  uint32_t num_slots() const { return static_cast<uint32_t>(tasks_.size()); }  // dead ones too
  uint32_t num_transfers() const { return static_cast<uint32_t>(transfers_.size()); }
  uint32_t num_shards() const { return static_cast<uint32_t>(shards_.size()); }
  // Transfers too; what is dead not.
  uint32_t num_tasks() const { return num_slots() + num_transfers() - num_dead_; }
  const std::vector<BlockTask>& tasks() const { return tasks_; }
  const std::vector<BlockTransfer>& transfers() const { return transfers_; }
  const std::vector<BlockRow>& rows() const { return rows_; }
  const std::vector<uint32_t>& local_deps() const { return local_deps_; }
  const std::vector<RowList>& lists() const { return lists_; }
  const std::vector<uint32_t>& row_bases() const { return row_bases_; }
  const std::vector<RingShard>& shards() const { return shards_; }
  const std::vector<uint32_t>& num_predecessors() const { return num_predecessors_; }  // by slot
  const std::vector<double>& loads() const { return loads_; }  // by simulated device
  const std::vector<Block>& blocks() const { return blocks_; }
  std::span<const Incoming> ins(const Block& block) const {
    return {ins_.data() + block.first_in, block.num_in};
  }

  // Of the transaction: slots from here on are new; blocks replaced, and what they were.
  uint32_t first_new_slot() const { return marks_.tasks; }
  const std::vector<uint32_t>& changed_blocks() const { return changed_; }
  const std::vector<Block>& original_blocks() const { return originals_; }
  // visit(slot, its row before, its row) for every task that is not new and that a changed block,
  // by place in changed_blocks(), starts from; the row before is empty where it was a ring's.
  template <typename Visit>
  void for_each_source(size_t place, const Visit& visit) const;

 private:
  enum class Kind { kParts, kInput, kRings };
  enum List { kForward, kBackward, kToSums, kFromSums, kNumLists };  // of an operator
  struct BlockName {
    Kind kind;
    uint32_t op = 0;  // or the group
    uint32_t input = 0;
  };
  struct Marks {
    uint32_t tasks = 0;
    uint32_t transfers = 0;
    uint32_t rows = 0;
    uint32_t local_deps = 0;
    uint32_t shards = 0;
    uint32_t ins = 0;
  };
  struct LocalDep {
    uint32_t row;
    uint32_t to;
  };
  // Of one direction of the block being emitted.
  struct Direction {
    std::vector<BlockTransfer> transfers;
    std::vector<LocalDep> local_deps;
    std::vector<TaskLabel> labels;

    void clear() {
      transfers.clear();
      local_deps.clear();
      labels.clear();
    }
  };
  struct Sink;

  void number_blocks();
  void make_lists();
  uint32_t parts_block(uint32_t op) const { return first_block_[op + 1] - 1; }
  uint32_t input_block(uint32_t op, uint32_t input) const { return first_block_[op] + input; }
  uint32_t ring_block(uint32_t group) const { return first_block_.back() + group; }
  uint32_t list_of(uint32_t op, List list) const { return op * kNumLists + list; }
  // The tasks that stand for the operator's tiles.
  std::span<const uint32_t> tiles(uint32_t op, const std::vector<uint32_t>& slots) const;

  void mark_ends();
  void find_blocks(std::span<const uint32_t> ops);
  void remove(uint32_t index);
  void emit(uint32_t index, bool adds_load);
  void emit_tasks(const BlockName& name);
  void join_parts(uint32_t op);
  uint32_t count_ring_rows(uint32_t group);
  void connect_shards();
  void lay_out(uint32_t index);
  void lay_out(const Direction& direction, bool is_reversed, BlockRow* rows, uint32_t num_rows);
  void count_ins(Block& block, const BlockName& name);
  void add_load(const Block& block);
  void note_first_rows(uint32_t index);
  bool is_within(double limit) const { return peak_ * (1 - kLoadRounding) <= limit; }
  bool emit_blocks(double limit);
  void forget();

  const OperatorGraph& graph_;
  TaskEmitter emitter_;
  Strategy strategy_;
  std::vector<uint32_t> first_block_;  // by operator: its inputs, then its parts; then groups
  std::vector<BlockName> names_;       // by block
  std::vector<std::vector<uint32_t>> readers_;  // by operator: input blocks
  std::vector<RowList> lists_;                  // by operator and List; then an empty one
  std::vector<uint32_t> ring_places_;           // by operator; in row_bases_
  struct Places {
    uint32_t forward = kNoSlot;  // in row_bases_, where the block's first rows are noted
    uint32_t backward = kNoSlot;
  };
  std::vector<Places> places_;  // by block
  bool keeps_labels_ = false;
  std::vector<TaskLabel> labels_;
  std::vector<TaskLabel> transfer_labels_;

  std::vector<BlockTask> tasks_;
  std::vector<uint32_t> num_predecessors_;
  std::vector<BlockTransfer> transfers_;
  std::vector<BlockRow> rows_;
  std::vector<uint32_t> local_deps_;
  std::vector<RingShard> shards_;
  std::vector<Incoming> ins_;
  std::vector<uint32_t> row_bases_;
  std::vector<Block> blocks_;
  std::vector<double> loads_;
  double peak_ = 0;  // of the loads, while a change is emitted
  uint32_t num_dead_ = 0;

  // Of one change.
  std::vector<uint32_t> found_;  // blocks to be replaced, in the order of emission
  std::vector<bool> is_found_;   // by block; false between uses
  Direction forward_;            // of the block being emitted
  Direction backward_;
  std::vector<uint32_t> in_counts_;  // by slot; 0 between uses
  std::vector<uint32_t> ring_rows_;  // by operator: the first
  std::vector<LocalDep> ring_deps_;  // of parts, to shards

  // Of the transaction.
  Marks marks_;
  std::vector<uint32_t> changed_;  // blocks
  std::vector<Block> originals_;   // by place in changed_
  std::vector<bool> is_changed_;   // by block
  std::vector<double> saved_loads_;
  std::vector<std::pair<uint32_t, OperatorConfig>> saved_configs_;
  std::vector<std::pair<uint32_t, PartSlots>> saved_slots_;
  uint32_t saved_num_dead_ = 0;
};

template <typename Visit>
void BlockGraph::for_each_source(size_t place, const Visit& visit) const {
  const auto visit_old = [&](uint32_t slot, const BlockRow& before, const BlockRow& row) {
    if (slot < marks_.tasks) visit(slot, before, row);
  };
  const BlockName& name = names_[changed_[place]];
  const Block& block = blocks_[changed_[place]];
  uint32_t row = block.first_row;
  if (name.kind == Kind::kRings) {
    for (const uint32_t op : emitter_.weight_groups()[name.op]) {
      for (uint32_t part = 0; part < strategy_[op].devices.size() && block.num_forward > 0;
           ++part) {
        visit_old(emitter_.slots()[op].backward[part], {}, rows_[row++]);
      }
    }
  }
  if (name.kind != Kind::kInput || block.num_forward == 0) return;
  const uint32_t producer = graph_.operators[name.op].inputs[name.input].producer;
  uint32_t before = originals_[place].first_row;
  for (const uint32_t slot : tiles(producer, emitter_.slots()[producer].forward)) {
    visit_old(slot, rows_[before++], rows_[row++]);
  }
  before = originals_[place].first_row + originals_[place].num_forward;
  for (uint32_t part = 0; part < block.num_backward; ++part) {
    visit_old(emitter_.slots()[name.op].backward[part], rows_[before++], rows_[row++]);
  }
}

}  // namespace eddy
