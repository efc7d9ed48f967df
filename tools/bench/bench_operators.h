// eddy bench operators: single operators, each at several sizes, beside ONNX Runtime in the same
// run.
//
// Each case is a graph of one node with inputs from the seed, written to a file for the rival, and
// measured on one thread and on all. Results are compared. What a whole network hides, a slow
// kernel of one shape, stands here in a row of its own.
#pragma once

#include "tools/bench/bench_suite.h"

namespace eddy {

struct BenchOperatorsArguments {
  BenchOptions common;
  uint64_t seed = 7;  // of the inputs
};

// kDiffers when a result is not the rival's. Slower than the rival is no failure: machines differ.
Outcome bench_operators(const BenchOperatorsArguments& arguments, Console& console,
                        Interrupts& interrupts);

}  // namespace eddy
