#include "runtime/api/python/errors.h"

namespace eddy::python {
namespace {

py::object location_of(eddy_error error) {
  eddy_location at = {};
  at.struct_size = sizeof(at);
  if (error == nullptr || api().error_location(error, &at) != EDDY_OK) return py::none();
  return py::make_tuple(at.file, at.line, at.column, at.text);
}

py::list path_of(eddy_error error) {
  py::list path;
  const size_t count = error == nullptr ? 0 : api().error_num_parts(error);
  for (size_t i = 0; i < count; ++i) {
    eddy_path_part part = {};
    part.struct_size = sizeof(part);
    if (api().error_part(error, i, &part) != EDDY_OK) break;
    path.append(py::make_tuple(part.kind, part.name, part.iteration));
  }
  return path;
}

[[noreturn]] void raise(eddy_code code, const py::str& message, const py::str& reason,
                        const py::list& path, const py::object& location) {
  const py::object error = py::module_::import("eddy._errors").attr("Error");
  const py::object made = error(code, message, reason, path, location);
  PyErr_SetObject(error.ptr(), made.ptr());
  throw py::error_already_set();
}

// Messages may hold bytes of a caller's that are no UTF-8.
py::str text(const char* of) {
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
      of, static_cast<Py_ssize_t>(std::char_traits<char>::length(of)), "replace"));
}

}  // namespace

void raise(eddy_code code, eddy_error error) {
  const Handle<eddy_error> owned(error);
  const char* const name = api().code_name(code);
  raise(code, text(error == nullptr ? name : api().error_message(error)),
        text(error == nullptr ? name : api().error_reason(error)), path_of(error),
        location_of(error));
}

void raise(eddy_code code, const std::string& reason) {
  raise(code, text(reason.c_str()), text(reason.c_str()), py::list(), py::none());
}

}  // namespace eddy::python
