// add_gradient_program: a random differentiable program with every form of control flow.
//
//   add_gradient_program(b, seed);   // inputs a, b, c: double[], v: double[4]; output loss:
//   double[]
//
// Loops with work on both sides of their check, left by their data, a count, a limit or after no
// trip at all; rows that are stacked; rows of v read one by one; branches with a default or values
// passed through; captured values; sequences that grow, shrink and are carried; all nested. Values
// stay near 1, loops end after at most four trips.
//
// Errors: the builder's. Threads: pure. The same seed and options add the same nodes.
#pragma once

#include <cstdint>

#include "graph/ir/builder.h"

namespace eddy::check {

struct GradientProgramOptions {
  int depth = 3;  // of control flow
  bool has_branches = true;
  bool has_sequences = true;
  bool has_waves = true;  // Sin and Cos
};

inline constexpr int64_t kGradientRows = 4;  // of v

void add_gradient_program(GraphBuilder& b, uint64_t seed, const GradientProgramOptions& options);

}  // namespace eddy::check
