// ExecNode: one exec node of one run: its kernel with arguments at hand, and the five ways to
// run it. Each way is a WorkFunction on the ExecNode:
//
//   fixed    all shapes known: refresh pointers, find the outputs' memory (planned, or writable
//            memory of their own), call the kernel; where an output may leave the graph, memory
//            that the caller has bound comes first (output_memory.h)
//   dynamic  shapes may change: the operator's own rule gives output shapes, skipped while input
//            shapes stay what they were
//   view     output 0 shares input 0's memory under another shape
//   still    a view of memory that is where it is for good: nothing
//   value    the kernel makes its outputs (sequences, optionals, shapes that depend on data), by
//            way of a SlotContext (value_context.h)
//
// Of a `fixed` node on another device whose values no host needs for enqueueing, the two halves can
// be had apart (recordable_work.h).
//
// `dynamic` grows input 0's buffer in place for operators that may append (Concat) when no other
// node uses the input: appending a row to a growing tensor is amortised O(row).
#pragma once

#include <span>
#include <vector>

#include "graph/ir/graph.h"
#include "ops/contract/kernel.h"
#include "runtime/device/device.h"
#include "runtime/device/recordable_work.h"
#include "runtime/execute/values/output_memory.h"
#include "runtime/execute/values/slot.h"

namespace eddy {

class RunBase;
class Staging;

struct alignas(64) ExecNode : RecordableWork {
  // What `fixed` reads where nothing moves comes first, in two cache lines: graphs of many small
  // nodes wait for memory.
  KernelFunction run = nullptr;
  KernelArgs args;
  std::atomic<uint32_t>* current_node = nullptr;  // of its strand
  // Inputs whose memory may change between executions: args.inputs[to].data = from->view.data.
  struct Refresh {
    TensorView* to;
    const Slot* from;
  };
  std::span<const Refresh> refresh;
  NodeId id;
  bool has_moving_outputs = false;
  bool makes_strings = false;
  // fixed, on another device than the host's; else false. What a copy to the device reads where it
  // stands must be memory that the device reads when it runs, not what it is given when it is
  // issued.
  bool may_be_recorded = false;
  bool may_append = false;       // dynamic, and input 0 is not used after this node
  bool has_host_values = false;  // shapes depend on contents that are not constant
  WorkFunction work = nullptr;   // which of the five ways

  struct Output {
    Slot* slot = nullptr;
    TensorView* view = nullptr;
    uint64_t size_bytes : 63 = 0;              // of fixed shape, or of its place
    uint64_t is_planned : 1 = 0;               // its slot stands at a place of the plan
    OutputTargets* targets_or_null = nullptr;  // memory of the caller that is bound for it
  };
  std::span<Output> out;
  // fixed: all of them where any one's memory may change
  std::span<const Output> moving() const {
    return has_moving_outputs ? std::span<const Output>(out) : std::span<const Output>();
  }

  std::span<Slot*> input_slots;  // null: omitted
  std::span<TensorView> inputs;
  std::span<TensorView> outputs() const { return {args.outputs, args.num_outputs}; }

  Allocator* output_memory = nullptr;  // its device's, or the host's (ToHost)
  RunBase* owner = nullptr;            // the run
  const Node* node = nullptr;
  // An input that ends with this node, which may write output 0 over it where shapes are equal and
  // nothing else holds its memory; in loops, for outputs of more than a cache line without a place
  // in the plan. Null: none.
  Slot* in_place_or_null = nullptr;
  Status error;
  const BoundKernel* kernel = nullptr;

  const Staging* reads_staging_of_or_null = nullptr;  // input 0 must be its memory
  bool prepare() override;
  bool may_move() const override { return !refresh.empty() || has_moving_outputs; }
  void reach() override { current_node->store(id.index(), std::memory_order_relaxed); }
  bool is_recordable() const override;
  void add_addresses(std::vector<const void*>& addresses) const override;
  bool enqueue(NativeStream stream, bool is_recorded) override;
  bool tell_error() override;
  void forget_error() override { error = Status(); }

  // Its functions and state.
  void use(const BoundKernel& kernel);
  // Before and behind the call of the kernel, in `fixed` and `dynamic`. False: failed, and
  // reported.
  bool begin();
  bool finish(bool is_ok);

  // All arguments are where their values are now.
  void bind();

  // What all but `fixed` need: what the operator's shape rule reads and gives (not for `value`),
  // and slots whose last use this is (release_plan.h).
  struct Changing {
    Changing(size_t num_inputs, size_t num_outputs)
        : input_types(num_inputs),
          output_types(num_outputs),
          input_type_pointers(num_inputs, nullptr),
          values(num_inputs, nullptr) {}
    bool are_types_known = false;  // they are of the last execution
    std::vector<ValueType> input_types;
    std::vector<ValueType> output_types;
    std::vector<const ValueType*> input_type_pointers;
    std::vector<const TensorView*> values;  // views of host-value inputs, else null
    std::vector<Slot*> release;
    size_t min_released_bytes = 0;
  };
  std::unique_ptr<Changing> changing;
};

bool run_fixed(void* exec_node);
bool run_dynamic(void* exec_node);
bool run_view(void* exec_node);
bool run_still(void* exec_node);

}  // namespace eddy
