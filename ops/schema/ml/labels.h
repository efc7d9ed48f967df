// LabelList: the keys or the values of a LabelEncoder, which stand in one of several attributes, by
// the type of their elements.
//
//   keys_strings = [a, b]   values_tensor = int16 [7, 9]        x = [b, a, c]  ->  [9, 7, -1]
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/tensor_view.h"

namespace eddy {

struct LabelList {
  ElementType element = ElementType::kUndefined;
  int64_t size = 0;
  const void* data = nullptr;  // std::string objects or numbers, of the attributes

  // Valid while the list stays where it is.
  TensorView view() const { return {const_cast<void*>(data), &size, 1, element}; }
};

// "keys" or "values": exactly one of PREFIX_strings, _int64s, _floats and _tensor holds some.
Status read_label_list(const Attributes& attributes, const std::string& prefix, LabelList& list);

// default_tensor, where it is given: one element of the type of `values`.
Status read_default_tensor(const Attributes& attributes, const LabelList& values,
                           const Constant*& tensor);

}  // namespace eddy
