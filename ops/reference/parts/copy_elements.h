// Copies runs of elements between tensors of one element type, strings too.
#pragma once

#include <cstdint>

#include "graph/ir/tensor_view.h"

namespace eddy {

// `count` elements from element `from_index` on to those from `to_index` on; both are there.
void copy_elements(const TensorView& from, int64_t from_index, const TensorView& to,
                   int64_t to_index, int64_t count);

}  // namespace eddy
