// Operators and host functions in Python: a context and a library of one session's own, and the
// thread that Python's functions are called on.
//
//   kernel ── defer() ──▶ CallThread: a queue ── takes the interpreter's lock ──▶ the function
//                                                     └── pending_complete ──▶ the run goes on
//
// Kernels run on stacks of 256 KB, and workers must not wait for a lock that a program may hold for
// long: so each call is handed over, and its answer comes later. Functions get copies of their
// inputs, which they may keep. What a function raises becomes the error of its node.
// Threads: functions of one library are called one after the other.
// Ownership: the library holds the functions, where the collector of cycles sees them; operators
// that outlive it fail.
#pragma once

#include <memory>
#include <vector>

#include "runtime/api/python/errors.h"

namespace eddy::python {

class CallThread;
struct UserFunction;

// Whether this thread is inside of a Python operator or host function.
bool is_inside_call();

class PyLibrary {
 public:
  explicit PyLibrary(const py::dict& context_options);
  ~PyLibrary();
  PyLibrary(const PyLibrary&) = delete;
  PyLibrary& operator=(const PyLibrary&) = delete;

  // `function(*arrays)` gives an array, or a tuple of them; `shapes` [(element, dims)] → the same,
  // or a text that says what is wrong. Attributes that a node has not are not given to either.
  void add_operator(const std::string& domain, const std::string& name, uint32_t num_inputs,
                    uint32_t num_outputs, const py::dict& attribute_kinds,
                    const py::object& function, const py::object& shapes);
  void add_host_function(const std::string& name, const py::object& function);
  eddy_library get() const { return library_; }
  bool has_calls() const { return thread_ != nullptr; }

  template <typename Visit>
  void traverse(Visit visit) const {
    for (const py::object& each : held_) visit(each.ptr());
  }
  void clear();

 private:
  std::shared_ptr<CallThread> thread();
  void hold(UserFunction& user, const py::object& function, const py::object& shapes);

  eddy_library library_ = nullptr;
  std::shared_ptr<CallThread> thread_;
  std::vector<UserFunction*> users_;  // the library's
  std::vector<py::object> held_;      // what those call
};

void add_operators(py::module_& m);

}  // namespace eddy::python
