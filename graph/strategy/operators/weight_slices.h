// Weight slices: which device holds which piece of the weights that a group of operators shares.
//
// The weights are cut at every boundary that any operator of the group cuts them at; a slice is
// held by each device that runs a part which needs it. Slices with the same shards are joined.
// In training the gradient of a slice is summed over its shards.
//
// Cuts of a group whose operators are cut in ways that do not fit each other (degrees with a
// common multiple above kMaxSharedSlices) count as one slice held by all: too dear rather than too
// cheap.
//
// Cost: O(parts of the group), plus sorting of shards.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/strategy/operators/strategy.h"

namespace eddy {

struct OperatorGraph;

inline constexpr int64_t kMaxSlices = 512;       // of one operator
inline constexpr int64_t kMaxSharedSlices = 64;  // of several: each costs a look at all of them

struct PartOfOperator {
  uint32_t op = 0;
  uint32_t part = 0;
};

struct SliceShard {
  uint32_t device = 0;
  std::vector<PartOfOperator> parts;  // those that need the slice, in order
};

struct WeightSlice {
  int64_t elements = 0;
  std::vector<SliceShard> shards;  // by device, ascending
};

// The operators of each weight group that has weights, by group; ascending.
std::vector<std::vector<uint32_t>> weight_groups(const OperatorGraph& graph);

// `group`: the operators that share the weights.
std::vector<WeightSlice> weight_slices(const OperatorGraph& graph, const Strategy& strategy,
                                       const std::vector<uint32_t>& group);

}  // namespace eddy
