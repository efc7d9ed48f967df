// LoopState: a while node of one run. Its commands, in the order in which lowering records them:
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
// The iteration is an int64 kept here; its slot is volatile (sharing it copies).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "graph/ir/graph.h"
#include "runtime/execute/output_memory.h"
#include "runtime/execute/transfer.h"

namespace eddy {

class RunState;

// Rows stacked along a new outermost axis.
struct ScanStack {
  Slot* row = nullptr;
  Slot* output = nullptr;
  ValueType row_type;        // as inferred; for stacks without rows
  BufferRef buffer;          // grows
  Dims dims;                 // of a row, once there is one
  ElementType element = ElementType::kUndefined;
  OutputTargets* targets_or_null = nullptr;  // it may leave the graph

  // Room for size_bytes, without growing.
  bool has_room(size_t size_bytes) const;
};

class LoopState {
 public:
  LoopState(RunState& state, NodeId id);

  static bool enter(void* loop);
  static int32_t test(void* loop);
  static bool advance(void* loop);
  static bool leave(void* loop);

  Slot& iteration_slot() { return iteration_slot_; }
  int64_t iteration() const { return counter_.load(std::memory_order_relaxed); }
  // Connects slots once all of them exist.
  void connect();
  // Drops references to memory of the last run.
  void reset();

 private:
  bool push_rows();
  Status push_row(ScanStack& stack);
  Status grow(ScanStack& stack, size_t row_bytes);
  Status finish_stack(ScanStack& stack);
  int32_t slow_test();

  RunState& state_;
  const NodeId id_;
  // Written by the strand that runs the loop; read by others for messages only (relaxed).
  std::atomic<int64_t> counter_{0};
  int64_t limit_ = INT64_MAX;
  const Slot* predicate_ = nullptr;
  bool is_predicate_fixed_ = false;  // known to be one bool
  Slot iteration_slot_;
  Slot* limit_slot_ = nullptr;
  Transfers initial_;
  Transfers carried_;
  Transfers results_;
  std::vector<ScanStack> stacks_;
};

}  // namespace eddy
