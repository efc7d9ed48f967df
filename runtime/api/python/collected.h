// collected<T>(): lets Python's collector of cycles look into objects of C++.
//
//   py::class_<PyLibrary, std::shared_ptr<PyLibrary>>(m, "Library", collected<PyLibrary>())
//
// T::traverse(visit) calls visit(object) once for each reference to a Python object that T alone
// owns; what is shared with other objects of C++ is shared as the Python object that wraps it. Else
// the collector would count a reference twice, and free what is in use. T::clear() drops references
// that close cycles; the object may still be asked for things then. Where T has none, another
// object of each cycle has to.
// Threads: both with the interpreter's lock held.
#pragma once

#include <pybind11/pybind11.h>

namespace eddy::python {

// Null before its constructor has returned; the collector may come as early as that. For classes
// that have one base, without inheritance in Python.
template <typename T>
T* constructed_or_null(PyObject* self) {
  auto* const instance = reinterpret_cast<pybind11::detail::instance*>(self);
  if (!instance->simple_layout || !instance->simple_holder_constructed) return nullptr;
  return static_cast<T*>(instance->simple_value_holder[0]);
}

template <typename T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const T* const object = constructed_or_null<T>(self);
  if (object == nullptr) return 0;
  int result = 0;
  object->traverse([&](PyObject* held) {
    if (result == 0 && held != nullptr) result = visit(held, arg);
  });
  return result;
}

template <typename T>
pybind11::custom_type_setup collected() {
  return pybind11::custom_type_setup([](PyHeapTypeObject* heap_type) {
    PyTypeObject& type = heap_type->ht_type;
    type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type.tp_traverse = traverse<T>;
    if constexpr (requires(T & object) { object.clear(); }) {
      type.tp_clear = [](PyObject* self) {
        if (T* const object = constructed_or_null<T>(self)) object->clear();
        return 0;
      };
    }
  });
}

}  // namespace eddy::python
