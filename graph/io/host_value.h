// HostValue: a value of a graph as a plain struct that owns its data: nothing (an empty
// optional), a tensor, or a sequence. What files are read into and results are compared as.
//
// Threads: as a plain value. Cost: copying copies the data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"

namespace eddy {

struct HostValue {
  enum class Kind : uint8_t { kNone, kTensor, kSequence };

  Kind kind = Kind::kNone;
  ElementType element = ElementType::kUndefined;  // of the tensor or of the sequence's tensors
  Dims dims;                                      // kTensor: static
  std::vector<std::byte> bytes;      // kTensor: row-major, one byte for each 4-bit element
  std::vector<std::string> strings;  // kTensor of kString, instead of bytes
  std::vector<HostValue> elements;   // kSequence

  static HostValue none() { return {}; }
  // A tensor of zeros (of empty strings). `dims` must be static and small enough to allocate.
  static HostValue tensor(ElementType element, const Dims& dims);
  // A copy of a tensor.
  static HostValue copy_of(const TensorView& view);
  static HostValue sequence(ElementType element, std::vector<HostValue> elements = {});

  // kTensor: valid until the value changes or is moved.
  TensorView view() const;
};

}  // namespace eddy
