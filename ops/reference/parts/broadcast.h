// BroadcastIndex: which element of an input stands behind an element of the broadcast output.
//
// NumPy's rule: shapes are aligned at their last dimensions, and a dimension of 1 is repeated.
// The schema has checked that the input fits. O(rank) for each element.
#pragma once

#include <array>
#include <cstdint>

#include "graph/ir/attributes.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"
#include "ops/contract/kernel.h"

namespace eddy {

class BroadcastIndex {
 public:
  BroadcastIndex() = default;
  BroadcastIndex(const Dims& input, std::span<const int64_t> output);

  // Row-major position in the input for row-major position `i` of the output.
  int64_t operator()(int64_t i) const {
    if (is_same_) return i;
    int64_t position = 0;
    for (int axis = rank_ - 1; axis >= 0; --axis) {
      const size_t a = static_cast<size_t>(axis);
      position += i % dims_[a] * strides_[a];
      i /= dims_[a];
    }
    return position;
  }

 private:
  bool is_same_ = true;
  int rank_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
  std::array<int64_t, kMaxRank> strides_{};
};

}  // namespace eddy
