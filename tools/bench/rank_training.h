// What eddy bench ranks measures of training: a step of the network of `mlp` (784-512-512-10 with
// Relu, the loss a mean of squares) whose samples ranks share, by gradient descent.
//
// Each parameter's gradient is averaged over the ranks as soon as the backward pass has it, on a
// channel of its own, beside what is left of that pass (examples/ranks/training.cc). Averages are
// of `order` any.
#pragma once

#include <cstdint>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/api/library.h"
#include "runtime/api/tensor.h"

namespace eddy {

// Of all ranks together: the fewer, the more of a step is its sums, 2.7 MB of gradients.
inline constexpr int64_t kTrainedSamples[] = {256, 1024};

// Inputs "x" [samples, 784] and the parameters; outputs "loss" and, in their order, the parameters
// behind the step. Over one rank, nothing is averaged.
Result<Graph> rank_training_step(const Library& library, int64_t samples, int64_t num_ranks);
// Seeded; the same parameters for each rank.
NamedTensors rank_training_inputs(int64_t samples, uint32_t rank);

}  // namespace eddy
