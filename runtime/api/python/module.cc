// eddy._core: the C interface as classes that the modules of package eddy are written with.
#include "runtime/api/python/graphs.h"
#include "runtime/api/python/interrupt.h"
#include "runtime/api/python/operators.h"
#include "runtime/api/python/runs.h"
#include "runtime/api/python/sessions.h"
#include "runtime/api/python/values.h"

PYBIND11_MODULE(_core, m) {
  using namespace eddy::python;
  if (eddy_get_api(EDDY_API_VERSION) == nullptr) {
    throw py::import_error("this libeddy.so.1 has another API version than the module");
  }
  m.attr("__version__") = eddy::api().version_text();
  m.def("set_main_thread", set_main_thread);
  m.def("code_name", [](int code) { return eddy::api().code_name(code); });
  add_values(m);
  add_sessions(m);
  add_runs(m);
  add_operators(m);
  add_graphs(m);
}
