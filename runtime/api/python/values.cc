#include "runtime/api/python/values.h"

#include <pybind11/stl.h>

#include "runtime/api/c/eddy_dlpack.h"

namespace eddy::python {
namespace {

// Types of devices whose memory the host reads.
constexpr int kDLCPU = 1;
constexpr int kDLPinned = 3;

// Keeps an object until any thread lets go of it.
void let_go(void* object) {
  if (!Py_IsInitialized()) return;  // the memory goes with the process
  const Locked locked;
  Py_DECREF(static_cast<PyObject*>(object));
}

PyValue of_strings(const py::array& array) {
  const py::list texts = array.attr("ravel")().attr("tolist")();
  std::vector<int64_t> offsets = {0};
  std::string bytes;
  for (const py::handle& text : texts) {
    if (!py::isinstance<py::str>(text) && !py::isinstance<py::bytes>(text)) {
      raise(EDDY_INVALID_ARGUMENT, "an array of objects must hold strings, not " +
                                       std::string(py::str(py::type::of(text))));
    }
    if (py::isinstance<py::bytes>(text)) {
      bytes += text.cast<std::string>();
    } else {
      Py_ssize_t size = 0;
      const char* const utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
      if (utf8 == nullptr) throw py::error_already_set();  // half of a surrogate pair
      bytes.append(utf8, static_cast<size_t>(size));
    }
    offsets.push_back(static_cast<int64_t>(bytes.size()));
  }
  eddy_value made = nullptr;
  check([&](auto e) {
    return api().value_from_strings(reinterpret_cast<const int64_t*>(array.shape()),
                                    static_cast<int32_t>(array.ndim()), offsets.data(),
                                    bytes.data(), &made, e);
  });
  return PyValue(made);
}

PyValue of_array(const py::array& given) {
  if (element_of(given.dtype()) == EDDY_STRING) return of_strings(given);
  const py::array array = dense(given);
  const eddy_tensor view = view_of(array);
  PyObject* const kept = array.ptr();
  Py_INCREF(kept);  // let_go() is called also where this fails
  eddy_value made = nullptr;
  check([&](auto e) { return api().value_borrow(&view, let_go, kept, &made, e); });
  return PyValue(made);
}

PyValue of_list(const py::sequence& objects, eddy_element element) {
  std::vector<PyValue> values;
  std::vector<eddy_value> handles;
  for (const py::handle& object : objects) {
    values.push_back(PyValue::of(py::reinterpret_borrow<py::object>(object), element));
    handles.push_back(values.back().get());
  }
  if (element == EDDY_UNDEFINED && !values.empty()) element = values[0].view().element;
  eddy_value made = nullptr;
  check([&](auto e) {
    return api().value_sequence(element, handles.data(), handles.size(), &made, e);
  });
  return PyValue(made);
}

py::array strings_of(const PyValue& value) {
  size_t size = 0;
  check([&](auto e) { return api().value_strings(value.get(), nullptr, nullptr, &size, e); });
  const eddy_tensor view = value.view();
  size_t count = 1;
  for (int32_t i = 0; i < view.rank; ++i) count *= static_cast<size_t>(view.dims[i]);
  std::vector<int64_t> offsets(count + 1);
  std::string bytes(size, '\0');
  check([&](auto e) {
    return api().value_strings(value.get(), offsets.data(), bytes.data(), nullptr, e);
  });
  py::list texts;
  for (size_t i = 0; i < count; ++i) {
    texts.append(py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(bytes.data() + offsets[i], offsets[i + 1] - offsets[i], "replace")));
  }
  const py::module_ numpy = py::module_::import("numpy");
  const py::object flat = numpy.attr("empty")(count, "O");
  if (count > 0) flat[py::slice(py::none(), py::none(), py::none())] = texts;
  return flat.attr("reshape")(py::cast(std::vector<int64_t>(view.dims, view.dims + view.rank)));
}

py::object at(const PyValue& value, size_t index) {
  eddy_value made = nullptr;
  check([&](auto e) { return api().value_at(value.get(), index, &made, e); });
  return py::cast(PyValue(made));
}

size_t length(const PyValue& value) {
  size_t made = 0;
  check([&](auto e) { return api().value_length(value.get(), &made, e); });
  return made;
}

template <typename Managed>
void forget(PyObject* capsule) {
  // A consumer renames what it has taken.
  for (const char* const name : {"dltensor", "dltensor_versioned"}) {
    if (!PyCapsule_IsValid(capsule, name)) continue;
    auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
}

py::object to_dlpack(const PyValue& value, const py::object&, const py::object& max_version,
                     const py::object&, const py::object&) {
  const bool is_versioned = !max_version.is_none() && max_version[py::int_(0)].cast<int>() >= 1;
  if (is_versioned) {
    DLManagedTensorVersioned* made = nullptr;
    check([&](auto e) { return api().value_to_dlpack_versioned(value.get(), &made, e); });
    return py::reinterpret_steal<py::object>(
        PyCapsule_New(made, "dltensor_versioned", forget<DLManagedTensorVersioned>));
  }
  DLManagedTensor* made = nullptr;
  check([&](auto e) { return api().value_to_dlpack(value.get(), &made, e); });
  return py::reinterpret_steal<py::object>(
      PyCapsule_New(made, "dltensor", forget<DLManagedTensor>));
}

// By an array that shows the memory. Not by pybind11's def_buffer, which nothing may be thrown
// from.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const py::object object = py::reinterpret_borrow<py::object>(self);
    const py::array array = shown(object.cast<const PyValue&>().view(), object);
    return PyObject_GetBuffer(array.ptr(), view, flags);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  view->obj = nullptr;
  return -1;
}

}  // namespace

py::array array_of(const py::object& object, eddy_element hint) {
  if (py::isinstance<py::array>(object)) return py::reinterpret_borrow<py::array>(object);
  const py::module_ numpy = py::module_::import("numpy");
  py::array made = numpy.attr("asarray")(object);
  if (hint == EDDY_UNDEFINED || hint == EDDY_STRING || py::hasattr(object, "dtype")) return made;
  const py::dtype wanted = dtype_of(hint);
  if (!numpy.attr("can_cast")(made.dtype(), wanted, "same_kind").cast<bool>()) return made;
  return made.attr("astype")(wanted, py::arg("copy") = false);
}

PyValue PyValue::of(const py::object& object, eddy_element hint) {
  if (py::isinstance<PyValue>(object)) return object.cast<PyValue>();
  if (object.is_none()) {
    eddy_value made = nullptr;
    check([&](auto e) { return api().value_none(&made, e); });
    return PyValue(made);
  }
  const bool is_array = py::isinstance<py::array>(object);
  if (!is_array && py::hasattr(object, "__dlpack__")) return from_dlpack(object);
  return of_array(array_of(object, hint));
}

PyValue PyValue::from_dlpack(const py::object& object) {
  if (py::hasattr(object, "__dlpack_device__")) {
    const int device = object.attr("__dlpack_device__")().cast<py::tuple>()[0].cast<int>();
    if (device != kDLCPU && device != kDLPinned) {
      raise(EDDY_UNSUPPORTED, "a tensor on a device of DLPack's type " + std::to_string(device) +
                                  "; this module takes those of the host: copy it there");
    }
  }
  const py::object capsule = object.attr("__dlpack__")();
  eddy_value made = nullptr;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    auto* const managed =
        static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    check([&](auto e) { return api().value_from_dlpack(managed, &made, e); });
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto* const managed = static_cast<DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    check([&](auto e) { return api().value_from_dlpack_versioned(managed, &made, e); });
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
  } else {
    raise(EDDY_INVALID_ARGUMENT, "__dlpack__() has given no capsule that holds a tensor");
  }
  return PyValue(made);
}

int32_t PyValue::kind() const {
  int32_t made = 0;
  check([&](auto e) { return api().value_kind(get(), &made, e); });
  return made;
}

eddy_tensor PyValue::view() const {
  eddy_tensor made = {};
  check([&](auto e) { return api().value_tensor(get(), &made, e); });
  return made;
}

py::object PyValue::to_python(const py::object& self, bool is_copy) {
  const auto& value = self.cast<const PyValue&>();
  const int32_t kind = value.kind();
  if (kind == 0) return py::none();
  if (kind == 2) {
    py::list all;
    for (size_t i = 0; i < length(value); ++i) all.append(to_python(at(value, i), is_copy));
    return all;
  }
  const eddy_tensor view = value.view();
  if (view.element == EDDY_STRING) return strings_of(value);
  return is_copy ? copy_of(view) : shown(view, self);
}

void add_values(py::module_& m) {
  py::class_<PyValue>(m, "Value", py::custom_type_setup([](PyHeapTypeObject* type) {
                        type->as_buffer.bf_getbuffer = get_buffer;
                        type->ht_type.tp_as_buffer = &type->as_buffer;
                      }),
                      "An immutable value of Eddy's: a tensor, a sequence of them, or nothing.")
      .def_property_readonly("kind", &PyValue::kind)
      .def_property_readonly("element", [](const PyValue& v) { return v.view().element; })
      .def_property_readonly("dtype", [](const PyValue& v) { return dtype_of(v.view().element); })
      .def_property_readonly(
          "shape",
          [](const PyValue& v) {
            const eddy_tensor view = v.view();
            return py::tuple(py::cast(std::vector<int64_t>(view.dims, view.dims + view.rank)));
          })
      .def(
          "numpy", [](const py::object& self) { return PyValue::to_python(self, false); },
          "The elements without a copy, read-only; of a sequence a list, of nothing None.")
      .def(
          "copy", [](const py::object& self) { return PyValue::to_python(self, true); },
          "As numpy(), but an array of the caller's own.")
      .def(
          "__array__",
          [](const py::object& self, const py::object& dtype) {
            const py::object made = PyValue::to_python(self, false);
            return dtype.is_none() ? made : made.attr("astype")(dtype);
          },
          py::arg("dtype") = py::none())
      .def("__len__",
           [](const PyValue& v) {
             if (v.kind() == 2) return length(v);
             const eddy_tensor view = v.view();
             if (view.rank == 0) throw py::type_error("len() of a tensor without axes");
             return static_cast<size_t>(view.dims[0]);
           })
      .def("__getitem__",
           [](const py::object& self, const py::object& index) -> py::object {
             const auto& value = self.cast<const PyValue&>();
             if (value.kind() != 2) return PyValue::to_python(self, false)[index];
             const py::ssize_t given = index.cast<py::ssize_t>();
             const auto count = static_cast<py::ssize_t>(length(value));
             const py::ssize_t place = given < 0 ? given + count : given;
             if (place < 0 || place >= count) throw py::index_error("no such element");
             return at(value, static_cast<size_t>(place));
           })
      .def("__dlpack__", to_dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__", [](const PyValue&) { return py::make_tuple(1, 0); });
  m.def(
      "value", [](const py::object& object) { return PyValue::of(object); }, py::arg("object"),
      "A Value that shows an array's memory, which must not be written any more.");
  m.def(
      "sequence",
      [](const py::sequence& objects, int element) {
        return of_list(objects, static_cast<eddy_element>(element));
      },
      py::arg("objects"), py::arg("element") = 0,
      "A sequence of tensors, as an input of type seq(tensor(...)) takes it: of arrays or Values, "
      "all of\none dtype. `element`: ONNX's number of their type, needed where there are none.");
  m.def("from_dlpack", &PyValue::from_dlpack, py::arg("object"),
        "A Value that shows the memory of what has __dlpack__; it must not be written any more.");
  m.def("dtype_of", [](int element) { return dtype_of(static_cast<eddy_element>(element)); });
  m.def("element_of", [](const py::object& dtype) {
    return static_cast<int>(element_of(py::dtype::from_args(dtype)));
  });
}

}  // namespace eddy::python
