// PyValue: an immutable value of Eddy's (tensor, sequence, nothing) as Python sees it: eddy.Value.
//
// Its memory is shown without a copy: numpy(), the buffer protocol, __dlpack__. Made of arrays
// (their memory borrowed, so it must not be written any more), of DLPack tensors, lists, None.
// Threads: with the interpreter's lock held; the last reference to borrowed memory may go on any
// thread, which takes the lock then.
#pragma once

#include <memory>

#include "runtime/api/python/arrays.h"

namespace eddy::python {

class PyValue {
 public:
  explicit PyValue(eddy_value handle) : handle_(handle) {}

  // Of anything that is a value; `hint`: the elements of what has no dtype itself, or undefined.
  static PyValue of(const py::object& object, eddy_element hint = EDDY_UNDEFINED);
  static PyValue from_dlpack(const py::object& object);

  eddy_value get() const { return handle_.get(); }
  int32_t kind() const;  // 0 nothing, 1 tensor, 2 sequence
  eddy_tensor view() const;
  // Arrays that show the memory (`self` keeps it), or copies that may be written; strings, lists
  // and None as such.
  static py::object to_python(const py::object& self, bool is_copy);

 private:
  Handle<eddy_value> handle_;
};

// An array of anything but a Value: what has a dtype keeps it, the rest gets `hint` where that
// loses nothing but precision.
py::array array_of(const py::object& object, eddy_element hint);

void add_values(py::module_& m);

}  // namespace eddy::python
