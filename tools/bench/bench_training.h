// eddy bench training: gradients and training steps (training_cases.h), on one thread, with
// PyTorch in eager mode where a python3 imports it (torch_rival.h).
//
// Loops: forward alone, and forward and backward with each policy
// (graph/differentiate/save_policy.h), an iteration, with the bytes that an iteration (and a state)
// keeps by types, and the session's peak of tensors. Networks: forward alone, a step of sgd or
// Adam, and its planned peak over the least that any layout takes; the step of the convolutional
// one with two workers, too. Then how long differentiating a chain of nodes takes, a node. PyTorch
// runs after Eddy's rounds of the same case, in a process of its own, and draws its own weights.
#pragma once

#include "tools/bench/bench_suite.h"

namespace eddy {

// Slower than the rival is no failure.
Outcome bench_training(const BenchOptions& options, Console& console, Interrupts& interrupts);

}  // namespace eddy
