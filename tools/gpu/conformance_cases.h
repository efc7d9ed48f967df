// Calls of the conformance part: the operators that need more than rows of numbers, with shapes
// that leave tails of packs, tiles and blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/ir/attributes.h"
#include "graph/ir/opset.h"
#include "graph/ir/types.h"

namespace eddy {

struct ConformanceInput {
  enum class Of {
    kNumbers,
    kDivisor,  // numbers, none of them 0
    kBits,     // any bits; of 8-bit types
    kIndices,  // below `limit`
    kLengths,  // from 1 to `limit`
    kGiven,    // `given`
    kOmitted,
  };
  Dims dims;
  Of of = Of::kNumbers;
  int64_t limit = 0;
  std::vector<int64_t> given = {};
  // None: the row's. Indices and lists that the host reads are int64 unless another type is named.
  ElementType type = ElementType::kUndefined;
};

struct ConformanceCase {
  std::string_view op;
  std::vector<ConformanceInput> inputs;
  Attributes attributes = {};
  size_t num_outputs = 1;
  // Times what a row of its type is allowed: sums of products in another order.
  double slack = 1;
  int opset = kNewestOpset;
  std::string_view domain = "";

  // One row; the types are all named.
  bool is_of_one_type() const;
};

const std::vector<ConformanceCase>& conformance_cases();

}  // namespace eddy
