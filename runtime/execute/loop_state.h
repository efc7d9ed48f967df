// LoopState: a while node of one run. What strands call, in this order:
//
//   enter    counter = 0, parameters of `before` = initial values, stacks empty
//   begin_while
//     commands of `before`
//     test   decision: the counter is below the limit and the predicate is true
//     commands of `after`
//     advance  stacks the rows, moves the next carried values into the parameters, counts
//   end_while
//   leave    outputs = forwarded values and stacks
//
// Parameters of `after` are the very slots of `before`'s results, so forwarding costs nothing.
// Stacks grow by doubling; nothing is sized from a trip count.
//
// Of a pipelined loop (graph/schedule/plan/plan.h) each row is stacked by a command of its own, on
// the strand of the node that makes it, and strands that go on into the next iteration count
// theirs. Such a strand may read carried values by references of its own (Taking), which leave lets
// go of.
//
// A command that was refused memory can be done again: values change places once all memory is
// there.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/graph.h"
#include "runtime/execute/run_slots.h"
#include "runtime/execute/values/loop_progress.h"
#include "runtime/execute/values/output_memory.h"
#include "runtime/execute/values/row_sink.h"
#include "runtime/execute/values/transfer.h"

namespace eddy {

// Rows stacked along a new outermost axis.
struct ScanStack {
  Slot* row = nullptr;
  Slot* output = nullptr;
  ValueType row_type;  // as inferred; for stacks without rows
  BufferRef buffer;    // grows
  Dims dims;           // of a row, once there is one
  ElementType element = ElementType::kUndefined;
  int64_t num_rows = 0;
  RowSink* sink_or_null = nullptr;           // of this run: rows go there, too
  OutputTargets* targets_or_null = nullptr;  // it may leave the graph

  // Room for size_bytes, without growing.
  bool has_room(size_t size_bytes) const;
};

class LoopState final : public LoopProgress {
 public:
  LoopState(RunSlots& run, NodeId id);

  static bool enter(void* loop);
  static int32_t test(void* loop);
  static bool advance(void* loop);
  static bool leave(void* loop);

  // Stacks the row that becomes result `index` of `after`; then advance stacks none.
  struct RowPush {
    LoopState* owner = nullptr;
    ScanStack* stack = nullptr;
  };
  static bool push_row_apart(void* row_push);
  RowPush& row_apart(size_t index);
  // Of a loop that a device drives, in place of enter … leave: memory for that many rows, of fixed
  // shape, in each stack; where those of one lie; and, once the device has counted, what has become
  // of them.
  Status make_room(int64_t num_rows);
  void* room(size_t stack) const {
    EDDY_DCHECK(stack < stacks_.size()) << "stack " << stack << " of " << stacks_.size();
    return stacks_[stack].buffer.data();
  }
  void leave_rows();
  bool has_rows() const { return !stacks_.empty(); }
  bool streams_rows() const;

  // Where rows of that result of `after` are stacked.
  ScanStack& stack(size_t index);
  // Where the rows of the stacks go besides, by stack, or those of one result of `after`; the
  // pointers are null but in runs that stream them.
  std::vector<RowSink* const*> sinks(uint32_t index = kAllRows);
  // A strand begins its next iteration.
  static bool begin_tail(void* tail);
  Tail& add_tail() { return tails_.emplace_back(); }

  // A strand's own references, made anew in each iteration.
  struct Taking {
    LoopState* owner = nullptr;
    struct Pair {
      Slot* to;
      const Slot* from;
      ValueId value;
    };
    std::vector<Pair> pairs;
  };
  static bool take(void* taking);
  // In the order of the kRetain steps of its `after`; once its slots are there.
  void make_takings();
  const std::deque<Taking>& takings() const { return takings_; }
  Taking& taking(size_t index) {
    EDDY_CHECK(index < takings_.size()) << "there is no taking " << index;
    return takings_[index];
  }

  // Connects slots once all of them exist.
  void connect();
  // Drops references to memory of the last run.
  void reset();

 private:
  void let_go_of_takings();
  static void take_back(ScanStack& stack);
  bool push_rows();
  bool push_row_or_fail(ScanStack& stack);
  Status push_row(ScanStack& stack);
  Status grow(ScanStack& stack, size_t row_bytes);
  void give_up_small_block(ScanStack& stack, size_t row_bytes);
  static Status move_rows(ScanStack& stack, BufferRef to, size_t used_bytes);
  Status make_empty(const ScanStack& stack);
  static void finish_stack(ScanStack& stack);
  int32_t slow_test();
  void hand_on_initial(size_t k);
  void find_settling_slots();
  int64_t settle_trips() const;

  RunSlots& run_;
  const NodeId id_;
  int64_t limit_ = INT64_MAX;
  const Slot* predicate_ = nullptr;
  bool is_predicate_fixed_ = false;  // known to be one bool
  Slot* limit_slot_ = nullptr;
  // Of the trip rule: whether it settles, and what it asks (null: not asked).
  bool is_settled_ = false;
  const Slot* first_ = nullptr;
  const Slot* bound_ = nullptr;
  Transfers initial_;
  Transfers carried_;
  Transfers results_;
  std::vector<ScanStack> stacks_;
  bool has_rows_apart_ = false;
  std::deque<RowPush> row_pushes_;
  std::deque<Tail> tails_;
  std::deque<Taking> takings_;
};

}  // namespace eddy
