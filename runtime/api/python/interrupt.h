// Interruptible: while it lives, Ctrl-C cancels a run that this thread executes.
//
//   { const Interruptible watch(run);
//     if (PyErr_CheckSignals() != 0) …a signal came before the watch, and cancels nothing
//     api().run_execute(run, …); }
//   if (watch.was_interrupted()) …the interpreter's own handler has been marked, too
//
// Python looks at signals only between its instructions, and the main thread is inside of Eddy. So
// SIGINT gets a handler in front of Python's, which wakes a thread, which cancels the run; then
// Python's is called. It is installed at the first run and again where somebody has replaced it.
// Only in the main thread, and only where Python handles SIGINT; elsewhere this does nothing.
// Cost: one system call. A signal's handler has no argument, hence one object for the process.
#pragma once

#include "runtime/api/c/eddy.hpp"

namespace eddy::python {

class Interruptible {
 public:
  explicit Interruptible(eddy_run run);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  bool was_interrupted() const;

 private:
  eddy_run outer_ = nullptr;
  const bool is_watched_;
};

// To be called once by the thread in which Python handles signals.
void set_main_thread();

}  // namespace eddy::python
