// Unlocked and Locked: the interpreter's lock given away for a while, or taken by any thread.
//
// Python ends a daemon's thread that asks for the lock while the interpreter ends, by unwinding its
// stack as pthread_exit does, and no frame of C++ here can let that through. Such a thread waits
// instead, without the lock, until the process is gone; which is what later Pythons do themselves.
// So it does from begin_the_end() on, when the package's atexit function closes all sessions: what
// their runs raise on daemons' threads would be printed while the interpreter takes itself apart.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

namespace eddy::python {

// By the thread that ends the interpreter; by threads that runs need to end. Both go on.
void begin_the_end();
void go_on_at_the_end();
bool must_wait_for_the_end();

[[noreturn]] inline void wait_for_the_end() {
  for (;;) pause();
}

template <typename Take>
void take_or_wait_for_the_end(Take take) {
  try {
    take();
  } catch (abi::__forced_unwind&) {
    wait_for_the_end();
  }
}

class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    if (must_wait_for_the_end()) wait_for_the_end();
    take_or_wait_for_the_end([this] { PyEval_RestoreThread(state_); });
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* const state_;
};

class Locked {
 public:
  Locked() {
    take_or_wait_for_the_end([this] { state_ = PyGILState_Ensure(); });
  }
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace eddy::python
