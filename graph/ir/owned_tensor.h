// OwnedTensor: a dense tensor with memory of its own, for results of evaluating a node while
// compiling. Not for strings. Movable; the view is valid while the tensor lives.
#pragma once

#include <cstddef>
#include <memory>

#include "graph/ir/tensor_view.h"

namespace eddy {

struct OwnedTensor {
  ElementType element = ElementType::kUndefined;
  Dims dims;  // static
  std::unique_ptr<std::byte[]> bytes;

  TensorView view() const { return {bytes.get(), dims.data(), dims.rank(), element}; }
};

}  // namespace eddy
