// Accelerator: the second device of a program whose plan names two: the host's CPU and, beside it,
// a device with memory and kernels of its own.
//
// Its kernels are bound through `kernels`, which also has the copies: eddy.ToDevice and eddy.ToHost
// enqueue a copy between its memory and `staging` on the stream they are given. All host values of
// such a program live in staging memory, so copies need no detour; what does not (a caller's
// buffer, a loop's counter) is there when its copy is issued, and ToDevice may stage it.
//
// Ownership: `staging` belongs to the device; kernels may refer to it. Nothing of a program
// outlives its accelerator. Threads: as the device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir/expression.h"
#include "graph/ir/loop_program.h"
#include "ops/contract/registry.h"
#include "runtime/device/device.h"
#include "runtime/device/graph_capture.h"
#include "runtime/execute/loop_choice.h"

namespace eddy {

// What an accelerator offers for making one kernel of several elementwise nodes.
struct ElementFusion {
  // What a node applies to each element; none: it is not elementwise there. Empty: nothing is
  // fused, and why.
  std::function<std::optional<ElementFunction>(const KernelInit& init)> function_of = {};
  // Makes the kernel of eddy.Fused for these types.
  std::function<Status(const Expression& expression, const std::vector<ElementType>& inputs,
                       ElementType output)>
      prepare = {};
  std::string why_not = {};
};

// One launch of a loop's kernel: a pointer for each input and result of its program, bit i of
// `given` for the host's bool i, and words in host memory that the device reads and writes.
struct LoopCall {
  std::span<const void* const> inputs;
  std::span<void* const> results;
  uint64_t given = 0;
  int64_t limit = 0;
  const uint32_t* stop = nullptr;  // not 0: no further iteration begins
  int64_t* progress = nullptr;     // {iterations, 1 once it is over}; may lag behind
};

// What an accelerator offers for running a whole loop as one kernel.
struct LoopFusion {
  // Makes the kernel. Empty: loops never are one. kUnsupported: this one cannot be, and why.
  std::function<Result<const void*>(const LoopProgram& program)> prepare = {};
  std::function<Status(const void* kernel, const LoopCall& call, void* native_stream)> launch = {};
};

struct Accelerator {
  std::shared_ptr<Device> device;
  std::shared_ptr<const KernelRegistry> kernels;
  std::vector<std::string> notices = {};  // what is done without, a line each, for the log
  Allocator* staging = nullptr;
  // Whether all of these bytes are staging memory.
  std::function<bool(const void* data, size_t size_bytes)> is_staging = {};
  // Copies host memory to the accelerator's, and returns when it is there; empty: it can't.
  std::function<Status(void* to, const void* from, size_t size_bytes)> write = {};
  // Enqueues a copy of eight bytes between places in staging memory, as one kernel, so that it may
  // stand in any recording. Empty: it can't.
  std::function<Status(int64_t* to, const int64_t* from, void* native_stream)> copy_word = {};
  // Records what kernels enqueue; empty, or makes null: everything is issued one by one.
  std::function<std::unique_ptr<GraphCapture>()> make_capture = {};
  ElementFusion fusion = {};
  LoopFusion loop_fusion = {};
  // Loops beside each other become one where it could drive but some of them at once
  // (graph/compile/merge_loops.h).
  bool merges_loops = true;
  // Loops that it drives are driven in this way alone where they can be, else by a recording: for
  // measuring one way.
  std::optional<LoopChoice::Way> only_loop_way = {};
};

// The host's memory beside an accelerator: tensors in staging memory, strings in the CPU's.
class StagedHostMemory : public Allocator {
 public:
  StagedHostMemory(Allocator& staging, Allocator& cpu) : staging_(staging), cpu_(cpu) {}

  Result<BufferRef> allocate(size_t size_bytes) override { return staging_.allocate(size_bytes); }
  Result<BufferRef> allocate_strings(size_t count) override { return cpu_.allocate_strings(count); }
  MemoryStatistics statistics() const override { return staging_.statistics(); }
  // Buffers name their own owner, so none comes back here.
  void release(Buffer* buffer) noexcept override { buffer->owner->release(buffer); }

 private:
  Allocator& staging_;
  Allocator& cpu_;
};

}  // namespace eddy
