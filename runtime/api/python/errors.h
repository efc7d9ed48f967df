// Codes of the C interface as exceptions of Python: eddy.Error with code, reason, path and
// location.
//
//   check([&](auto e) { return api().run_create(session, &run, e); });          // quick
//   check_unlocked([&](auto e) { return api().session_create(graph, …, e); });  // may take long
//
// Threads: both with the interpreter's lock held; check_unlocked gives it away during the call, so
// that other threads go on and callbacks can take it.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "runtime/api/c/eddy.hpp"
#include "runtime/api/python/interpreter_lock.h"

namespace eddy::python {

namespace py = pybind11;

// Throws what becomes eddy.Error. Takes `error` over, which may be null.
[[noreturn]] void raise(eddy_code code, eddy_error error);
[[noreturn]] void raise(eddy_code code, const std::string& reason);

template <typename Call>
void check(Call call) {
  eddy_error error = nullptr;
  const eddy_code code = call(&error);
  if (code != EDDY_OK) [[unlikely]]
    raise(code, error);
}

template <typename Call>
void check_unlocked(Call call) {
  eddy_error error = nullptr;
  eddy_code code = EDDY_OK;
  {
    const Unlocked unlocked;
    code = call(&error);
  }
  if (code != EDDY_OK) raise(code, error);
}

// Releases a handle whose end may take long, or call back.
template <typename T>
void release_unlocked(T& handle) {
  const T gone = std::exchange(handle, nullptr);
  if (gone == nullptr) return;
  const Unlocked unlocked;
  api().release(gone);
}

}  // namespace eddy::python
