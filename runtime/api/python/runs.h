// PyRun: one run of a session, bound by index, executed or submitted again and again; PyRows: the
// values of an output while its loop runs.
//
// A run keeps what is bound to it until it is bound anew; one that is under way when Python lets go
// of it is cancelled, and waited for, since it uses that memory.
// Threads: as PySession; a run is of one thread at a time, but for wait, poll and cancel.
#pragma once

#include "runtime/api/python/sessions.h"

namespace eddy::python {

eddy_run_options run_options(double timeout, int priority);
// What binding needs, and what must stay meanwhile.
py::object bind_input(eddy_run run, size_t index, const Description& input,
                      const py::object& object);
// Gives the interpreter's lock away, and lets Ctrl-C cancel.
void execute(eddy_run run, const eddy_run_options& options);

void add_runs(py::module_& m);

}  // namespace eddy::python
