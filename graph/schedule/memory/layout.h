// Layout: offsets for blocks of which some must not overlap.
//
// Blocks are placed one by one, each into the smallest gap between the blocks it conflicts with
// that it fits into (best fit), or above them. Several orders are tried: by size, by size times
// length of life, by start, by size of the conflicting neighbourhood; then orders in which what
// stuck out at the top goes first, until the bound is met or kRepairs orders were no better.
//
// Contract: sizes are multiples of the alignment; `conflicts` is symmetric. `starts` and `ends`
// (any scale) only guide. Deterministic.
// Cost: O(orders * conflicts * log conflicts); the number of orders is held by a budget of steps.
// Source: best-fit decreasing as in dynamic storage allocation surveys (Wilson et al. 1995).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/bit_matrix.h"

namespace eddy {

struct LayoutProblem {
  std::span<const uint64_t> sizes_bytes;
  std::span<const uint32_t> starts;
  std::span<const uint32_t> ends;
  const BitMatrix& conflicts;
  uint64_t lower_bound_bytes = 0;  // good enough
};

struct Layout {
  std::vector<uint64_t> offsets_bytes;
  uint64_t peak_bytes = 0;
};

Layout lay_out(const LayoutProblem& problem);

}  // namespace eddy
