// Unlocked and Locked: the interpreter's lock given away for a while, or taken by any thread.
//
// Python ends a daemon's thread that asks for the lock while the interpreter ends, by unwinding its
// stack as pthread_exit does, and no frame of C++ here can let that through. Such a thread waits
// instead, without the lock, until the process is gone; which is what later Pythons do themselves.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

namespace eddy::python {

template <typename Take>
void take_or_wait_for_the_end(Take take) {
  try {
    take();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
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
