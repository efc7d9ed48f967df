// numpy's arrays and Eddy's tensors: element types, views without copies, copies where they must
// be.
//
// What has no dtype in numpy (bfloat16, numbers of 8 bits and less that are no integers) is refused
// here with a line that names DLPack; strings are arrays of objects.
// Threads: with the interpreter's lock held.
#pragma once

#include <pybind11/numpy.h>

#include "runtime/api/python/errors.h"

namespace eddy::python {

// EDDY_UNDEFINED where Eddy has no such elements.
eddy_element element_of(const py::dtype& dtype);
// Throws eddy.Error where numpy has none.
py::dtype dtype_of(eddy_element element);

// The array, dense and of the machine's byte order: the same one where it is so already.
py::array dense(const py::array& array);
// A view of a dense array, valid as long as that. Throws eddy.Error for dtypes that Eddy lacks.
eddy_tensor view_of(const py::array& array);
// A new array with the view's elements.
py::array copy_of(const eddy_tensor& view);
// An array that shows the memory, read-only, and keeps `owner`.
py::array shown(const eddy_tensor& view, const py::object& owner);

// How many bytes a tensor has; 0 of strings.
size_t size_bytes(const eddy_tensor& view);

}  // namespace eddy::python
