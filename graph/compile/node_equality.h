// When two nodes do the same: the comparison that folded results and merged nodes share.
//
// Large constants are compared by address, as the bytes of a graph stay where they are; small ones
// by value, because a builder that goes back frees and reuses their memory.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/ir/attributes.h"
#include "graph/ir/graph.h"

namespace eddy {

// Operator, version, number of results and attributes.
bool is_same_operation(const Node& a, const Node& b);

// A constant input, or one of which only the shape is known. Not of strings: their bytes do not
// determine their text.
class ComparedInput {
 public:
  static constexpr size_t kMinBytes = size_t{64} << 10;  // of one that is compared by address

  explicit ComparedInput(const TensorView& view);
  static bool is_large(const TensorView& view) {
    return view.data != nullptr && view.size_bytes() >= kMinBytes;
  }
  bool operator==(const ComparedInput& other) const;

 private:
  Constant constant_;  // of a small input: the type only
  std::vector<std::byte> small_;
};

}  // namespace eddy
