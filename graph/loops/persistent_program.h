// make_persistent_program: a while node that an accelerator can drive, as a LoopProgram that one
// kernel runs, and what of the run it reads.
//
// Such a loop is one that find_device_loops lets the device drive, and its nodes are all
// elementwise (eddy.Fused among them), reductions or views, without loops and branches inside. The
// accelerator decides whether the values are few enough.
//
// Errors: kUnsupported, and which node is in the way. Pure. Cost: O(nodes and values of the loop).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/loop_program.h"

namespace eddy {

struct PersistentProgram {
  LoopProgram program;
  std::vector<ValueId> inputs;  // by the program's inputs: roots, outside the loop
  std::vector<ValueId> given;   // bools in the host's memory, outside the loop
  // The loop's outputs that have readers: where they come from.
  struct Output {
    ValueId value;
    ValueId from;     // outside the loop, or none: as the kernel leaves it
    uint32_t result;  // of the program
  };
  std::vector<Output> outputs;
};

struct PersistentFacts {
  std::function<std::optional<ElementFunction>(NodeId)> function_of;
  std::function<bool(ValueId)> is_value_on_device;
  // The bytes of a constant that the host may read; null data where it may not.
  std::function<TensorView(ValueId)> constant;
};

Result<PersistentProgram> make_persistent_program(const Graph& graph, NodeId loop,
                                                  const PersistentFacts& facts);

}  // namespace eddy
