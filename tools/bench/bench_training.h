// eddy bench training: gradients and training steps (training_cases.h), on one thread, with
// PyTorch in eager mode where python3 imports it.
//
// Loops: forward alone, and forward and backward with each policy
// (graph/differentiate/save_policy.h), an iteration, with the bytes that an iteration keeps.
// Networks: forward alone, and a step of sgd. Then how long differentiating a chain of nodes takes,
// a node. PyTorch runs in a process of its own, after Eddy's rounds of the same case.
#pragma once

#include "tools/bench/bench_suite.h"

namespace eddy {

// Slower than the rival is no failure.
Outcome bench_training(const BenchOptions& options, Console& console, Interrupts& interrupts);

}  // namespace eddy
