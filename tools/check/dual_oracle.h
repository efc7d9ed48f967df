// interpret_dual: a program's value and derivatives, forward, without the gradient pass.
//
// Numbers are x + a e + b f + ab e f with e e = f f = 0: run with a = 1 at one input and b = 1 at
// another, the loss's `a` is its derivative for the first, `ab` the second one for both. A plain
// walk over the graph with loops and operators of its own; it shares nothing with
// graph/differentiate, kernels, planning or execution. It knows the operators of
// gradient_program.h.
//
// Errors: kUnsupported for another operator; kResourceExhausted beyond max_iterations in all.
// Threads: pure. Cost: O(executions x elements). Source: Fike and Alonso, "The Development of
// Hyper-Dual Numbers" (2011).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy::check {

struct Dual {
  double x = 0, a = 0, b = 0, ab = 0;
};

using DualInputs = std::map<std::string, std::vector<Dual>>;

struct DualRun {
  Dual loss;  // the first output
  // By path, of the last time that the loop ran; -1: several loops have that path.
  std::map<std::string, int64_t> trips;
  uint64_t num_iterations = 0;  // of all loops
  uint64_t num_loops_without_trip = 0;
};

Result<DualRun> interpret_dual(const Graph& graph, const DualInputs& inputs,
                               uint64_t max_iterations = 20'000);

}  // namespace eddy::check
