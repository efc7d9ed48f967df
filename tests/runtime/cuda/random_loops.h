// Random graphs of loops that a device can drive by itself: fixed shapes, nested up to three deep,
// with branches inside, values that permute, repeat, are captured or made in either region, tests
// that are made before, made after and carried, iteration numbers that are read, limits of zero.
//
// Every loop ends. The same seed gives the same graph.
#pragma once

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/api/library.h"
#include "runtime/api/tensor.h"

namespace eddy::testing {

struct RandomLoops {
  Graph graph;
  NamedTensors inputs;
};

Result<RandomLoops> make_random_loops(const Library& library, uint64_t seed);

}  // namespace eddy::testing
