// PySession, PyRun and PyRows: sessions and their runs, over the C interface.
//
// PySession::run() keeps runs that are prepared for later calls of any thread; arrays are bound as
// they are and read during the call only, outputs are copied out. PyRun is one run that its owner
// binds and submits; PyRows what a loop has made so far.
// Errors: eddy.Error; KeyboardInterrupt where Ctrl-C has cancelled the run.
// Threads: with the interpreter's lock held, which is given away while a run is under way.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/api/python/values.h"

namespace eddy::python {

struct Description {
  std::string name;
  eddy_type type;
};

// As texts, in any order.
Options texts_of(const py::dict& options);

class PySession {
 public:
  // Takes the handle over. `has_calls`: its operators are Python's, so that no run of it may be
  // waited for inside of one. `library`: holds those.
  PySession(eddy_session handle, py::object library, bool has_calls);
  ~PySession();
  PySession(const PySession&) = delete;
  PySession& operator=(const PySession&) = delete;

  eddy_session get() const;  // throws where it has been closed
  bool is_closed() const { return handle_ == nullptr; }
  const std::vector<Description>& inputs() const { return inputs_; }
  const std::vector<Description>& outputs() const { return outputs_; }
  size_t find_input(const py::handle& name) const;
  size_t find_output(const py::handle& name) const;
  // `names`: of outputs, or None for all; values, or arrays of the caller's own.
  py::list run(const py::object& names, const py::dict& feeds, double timeout, int priority,
               bool as_values);
  void close();
  // A call that may take long; the session lives through it, also where another thread closes it.
  void without_lock(eddy_code (*call)(eddy_session, eddy_error*)) const;
  std::string text(eddy_code (*call)(eddy_session, eddy_value*, eddy_error*)) const;
  // Throws where waiting here could never end.
  void check_may_wait() const;

  template <typename Visit>
  void traverse(Visit visit) const {
    visit(library_.ptr());
  }

 private:
  struct Slot;
  struct Borrowed;  // a slot, until the call ends
  void bind(Slot& slot, const py::dict& feeds) const;

  eddy_session handle_;
  const py::object library_;
  const bool has_calls_;
  std::vector<Description> inputs_, outputs_;
  py::dict input_places_, output_places_;
  std::vector<size_t> all_outputs_;
  std::vector<std::unique_ptr<Slot>> slots_;  // those that no call uses
};

void add_sessions(py::module_& m);

}  // namespace eddy::python
