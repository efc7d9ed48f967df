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
// `dynamic` grows input 0's buffer in place for operators that may append (Concat) when nobody
// else uses the input: appending a row to a growing tensor is amortised O(row).
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

struct ExecNode : RecordableWork {
  KernelFunction run = nullptr;
  KernelArgs args;
  WorkFunction work = nullptr;  // which of the five ways

  // Inputs whose memory may change between executions: args.inputs[to].data = from->view.data.
  struct Refresh {
    TensorView* to;
    const Slot* from;
  };
  std::vector<Refresh> refresh;
  struct Output {
    Slot* slot;
    TensorView* view;
    size_t size_bytes;                         // fixed only
    size_t planned_bytes = 0;                  // its slot stands at a place of the plan
    OutputTargets* targets_or_null = nullptr;  // memory of the caller that is bound for it
  };
  std::vector<Output> out;
  std::span<const Output> moving;  // fixed: all of them where any one's memory may change

  // Of calls that may answer later (exec_start.h), or fall apart into tiles.
  StartFunction start = nullptr;
  TileCountFunction count_tiles = nullptr;
  TileFunction run_tile = nullptr;

  std::vector<Slot*> input_slots;  // null: omitted
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;

  Allocator* memory = nullptr;  // its device's
  // Outputs' memory, where it is not its device's (ToHost).
  Allocator* output_memory = nullptr;
  RunBase* owner = nullptr;  // the run
  const Node* node = nullptr;
  NodeId id;
  std::atomic<uint32_t>* current_node = nullptr;  // of its strand
  Status error;
  ValueKernelFunction run_value = nullptr;

  // fixed, on another device than the host's; else false. What a copy to the device reads where it
  // stands must be memory that the device reads when it runs, not what it is given when it is
  // issued.
  bool may_be_recorded = false;
  const Staging* reads_staging_of_or_null = nullptr;  // input 0 must be its memory
  bool prepare() override;
  bool may_move() const override { return !refresh.empty() || !moving.empty(); }
  void reach() override { current_node->store(id.index(), std::memory_order_relaxed); }
  bool is_recordable() const override;
  void add_addresses(std::vector<const void*>& addresses) const override;
  bool enqueue(NativeStream stream, bool is_recorded) override;
  bool tell_error() override;
  void forget_error() override { error = Status(); }

  // Its functions and state.
  void use(const BoundKernel& kernel);
  // Before and behind the call of the kernel, in `fixed` and `dynamic`. False: failed, and told.
  bool begin();
  bool finish(bool is_ok);

  // All arguments are where their values are now.
  void bind();

  // Slots whose last use this is (release_plan.h); never for `fixed`.
  std::vector<Slot*> release;
  size_t min_released_bytes = 0;

  // dynamic
  bool may_append = false;  // and input 0 is not used after this node
  bool makes_strings = false;
  bool has_host_values = false;  // shapes depend on contents that are not constant
  // What the operator's shape rule reads and gives; of `dynamic` and `view` only, others do
  // without.
  struct Shapes {
    Shapes(size_t num_inputs, size_t num_outputs)
        : input_types(num_inputs),
          output_types(num_outputs),
          input_type_pointers(num_inputs, nullptr),
          values(num_inputs, nullptr) {}
    bool are_known = false;  // the types are of the last execution
    std::vector<ValueType> input_types;
    std::vector<ValueType> output_types;
    std::vector<const ValueType*> input_type_pointers;
    std::vector<const TensorView*> values;  // views of host-value inputs, else null
  };
  std::unique_ptr<Shapes> shapes;
};

bool run_fixed(void* exec_node);
bool run_dynamic(void* exec_node);
bool run_view(void* exec_node);
bool run_still(void* exec_node);

}  // namespace eddy
