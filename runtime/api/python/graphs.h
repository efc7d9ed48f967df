// PyGraph: a graph under construction, call for call that of the C interface, for the tracer in
// Python; values are numbers, places (file, line, column, text).
//
// Threads: with the interpreter's lock held, given away where shape functions may be called.
#pragma once

#include "runtime/api/python/errors.h"

namespace eddy::python {

void add_graphs(py::module_& m);

}  // namespace eddy::python
