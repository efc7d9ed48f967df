// Compile: makes kernels of several nodes while a program is bound: one of elementwise nodes
// (eddy.Fused), or one of a whole loop.
//
// Ownership: the device's; kernels live as long as it does. Errors: kUnsupported for what no kernel
// can be made of, and why; what the compiler or the driver says. Threads: any. Cost: a compiler's,
// unless the kernel is known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/expression.h"
#include "graph/ir/loop_program.h"
#include "ops/contract/kernel.h"

namespace eddy {

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

class Compile {
 public:
  virtual ~Compile() = default;
  // What a node applies to each element; none: it is not elementwise there.
  virtual std::optional<ElementFunction> function_of(const KernelInit& init) const = 0;
  // Makes the kernel of eddy.Fused for these types, so that binding finds it.
  virtual Status prepare_elements(const Expression& expression,
                                  const std::vector<ElementType>& inputs,
                                  const std::vector<ElementType>& outputs) = 0;
  virtual Result<const void*> prepare_loop(const LoopProgram& program) = 0;
  virtual Status launch_loop(const void* kernel, const LoopCall& call, void* native_stream) = 0;
};

}  // namespace eddy
