// build_random_network: a convolutional network of random layers, the same for the same seed: with
// branches, joins, gates, normalizations, pools, loops and if-branches. Input "x", floats
// [n, 3, h, w]; outputs "image" and "mean".
#pragma once

#include <cstdint>

#include "graph/ir/builder.h"

namespace eddy::testing {

void build_random_network(GraphBuilder& builder, uint64_t seed, const Dims& input);

}  // namespace eddy::testing
