#include "runtime/api/python/arrays.h"

#include <cstring>

namespace eddy::python {
namespace {

// numpy's kind and size of each element type; 0 where it has none.
struct Dtype {
  eddy_element element;
  char kind;
  uint8_t size;
};
constexpr Dtype kDtypes[] = {
    {EDDY_FLOAT, 'f', 4},     {EDDY_DOUBLE, 'f', 8},     {EDDY_FLOAT16, 'f', 2},
    {EDDY_INT64, 'i', 8},     {EDDY_INT32, 'i', 4},      {EDDY_INT16, 'i', 2},
    {EDDY_INT8, 'i', 1},      {EDDY_UINT64, 'u', 8},     {EDDY_UINT32, 'u', 4},
    {EDDY_UINT16, 'u', 2},    {EDDY_UINT8, 'u', 1},      {EDDY_BOOL, 'b', 1},
    {EDDY_COMPLEX64, 'c', 8}, {EDDY_COMPLEX128, 'c', 16}};

const Dtype* find_or_null(eddy_element element) {
  for (const Dtype& each : kDtypes) {
    if (each.element == element) return &each;
  }
  return nullptr;
}

std::vector<py::ssize_t> shape_of(const eddy_tensor& view) {
  return {view.dims, view.dims + view.rank};
}

}  // namespace

eddy_element element_of(const py::dtype& dtype) {
  const char kind = dtype.kind();
  const auto size = static_cast<uint8_t>(dtype.itemsize());
  for (const Dtype& each : kDtypes) {
    if (each.kind == kind && each.size == size) return each.element;
  }
  return kind == 'U' || kind == 'S' || kind == 'O' ? EDDY_STRING : EDDY_UNDEFINED;
}

py::dtype dtype_of(eddy_element element) {
  if (element == EDDY_STRING) return py::dtype("O");
  const Dtype* const found = find_or_null(element);
  if (found != nullptr) return py::dtype(found->kind + std::to_string(found->size));
  raise(EDDY_UNSUPPORTED, "numpy has no dtype for element type " + std::to_string(element) +
                              " of ONNX; take the value by run_values() and its __dlpack__()");
}

py::array dense(const py::array& array) {
  constexpr int kWanted =
      py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  const char order = py::detail::array_descriptor_proxy(array.dtype().ptr())->byteorder;
  if ((array.flags() & kWanted) == kWanted && order != '>') return array;
  const py::object made = py::module_::import("numpy").attr("require")(
      array, array.dtype().attr("newbyteorder")("="), py::make_tuple("C", "A"));
  return py::reinterpret_borrow<py::array>(made);
}

eddy_tensor view_of(const py::array& array) {
  eddy_tensor view = {};
  view.data = const_cast<void*>(array.data());
  static_assert(sizeof(py::ssize_t) == sizeof(int64_t));
  view.dims = reinterpret_cast<const int64_t*>(array.shape());
  view.rank = static_cast<int32_t>(array.ndim());
  view.element = element_of(array.dtype());
  if (view.element == EDDY_UNDEFINED) {
    raise(EDDY_INVALID_ARGUMENT,
          "Eddy has no elements of dtype " + py::cast<std::string>(array.dtype().attr("name")));
  }
  return view;
}

size_t size_bytes(const eddy_tensor& view) {
  const Dtype* const found = find_or_null(view.element);
  size_t size = found == nullptr ? 0 : found->size;
  for (int32_t i = 0; i < view.rank; ++i) size *= static_cast<size_t>(view.dims[i]);
  return size;
}

py::array copy_of(const eddy_tensor& view) {
  py::array made(dtype_of(view.element), shape_of(view));
  const size_t size = size_bytes(view);
  if (size > 0) std::memcpy(made.mutable_data(), view.data, size);
  return made;
}

py::array shown(const eddy_tensor& view, const py::object& owner) {
  if (view.element == EDDY_STRING) {
    raise(EDDY_UNSUPPORTED, "strings have no memory to show; numpy() copies them");
  }
  py::array made(dtype_of(view.element), shape_of(view), view.data, owner);
  py::detail::array_proxy(made.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return made;
}

}  // namespace eddy::python
