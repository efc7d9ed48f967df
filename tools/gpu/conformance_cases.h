// Calls of the conformance part: the operators that want more than rows of numbers, with shapes
// that leave tails of packs, tiles and blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/ir/attributes.h"
#include "graph/ir/types.h"

namespace eddy {

struct ConformanceInput {
  enum class Of {
    kElement,  // numbers of the row's type
    kDivisor,  // the same, none of them 0
    kFloat,    // float32, whatever the row's type
    kBools,
    kBytes,    // uint8
    kIndices,  // int64 below `limit`
    kInt32,    // int32, from 1 to `limit`
    kGiven,    // int64 that the host reads: `given`
    kOmitted,
  };
  Dims dims;
  Of of = Of::kElement;
  int64_t limit = 0;
  std::vector<int64_t> given = {};
};

struct ConformanceCase {
  std::string_view op;
  std::vector<ConformanceInput> inputs;
  Attributes attributes = {};
  size_t num_outputs = 1;
  // Times what a row of its type is allowed: sums of products in another order.
  double slack = 1;
};

const std::vector<ConformanceCase>& conformance_cases();

}  // namespace eddy
