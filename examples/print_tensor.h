// print_tensor: a tensor as nested lists, "[[1, 2], [3, 4]]"; a scalar as one value.
//
// For float, double, int64 and bool; another element type is a programmer error.
#pragma once

#include <ostream>

#include "runtime/api/tensor.h"

namespace eddy {

// Axis `axis` and those inside it; takes what it prints off `values`.
template <typename T>
void print_axis(std::ostream& out, const Dims& dims, int axis, std::span<const T>& values) {
  if (axis == dims.rank()) {
    out << values[0];
    values = values.subspan(1);
    return;
  }
  out << "[";
  for (int64_t i = 0; i < dims[axis]; ++i) {
    out << (i > 0 ? ", " : "");
    print_axis(out, dims, axis + 1, values);
  }
  out << "]";
}

inline void print_tensor(std::ostream& out, const Tensor& tensor) {
  const auto print = [&](auto values) { print_axis(out, tensor.dims(), 0, values); };
  switch (tensor.element_type()) {
    case ElementType::kFloat:
      return print(tensor.values<float>());
    case ElementType::kDouble:
      return print(tensor.values<double>());
    case ElementType::kInt64:
      return print(tensor.values<int64_t>());
    default:
      return print(tensor.values<bool>());
  }
}

}  // namespace eddy
