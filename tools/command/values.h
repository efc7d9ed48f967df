// Values between files, sessions and people.
//
// Tensors made from a HostValue borrow its memory: keep it alive and unmoved.
// In JSON a tensor is {"dtype", "shape", "data"}: data flat and row-major, NaN and infinities the
// strings "nan", "inf", "-inf", complex numbers [re, im], 8-bit floats their bits as "0x3c"; a
// sequence is a list of tensors, an empty optional null.
#pragma once

#include <string>

#include "graph/io/host_value.h"
#include "runtime/api/tensor.h"
#include "tools/command/console.h"

namespace eddy {

Tensor borrow_value(const HostValue& value);
HostValue copy_value(const Tensor& tensor);

// One element as JSON shows it.
Json element_json(const TensorView& view, int64_t i);
Json value_json(const Tensor& tensor);

// "float[2,3]", "sequence of 2 float", "nothing".
std::string shape_text(const Tensor& tensor);
// The elements, row by row, at most `max_elements` of them.
std::string data_text(const Tensor& tensor, int64_t max_elements);

}  // namespace eddy
