// Calls of a caller's functions: what they throw goes no further.
//
// Programs in C++ may throw through the functions of eddy.h that they give. Where Eddy waits for a
// result, the call has failed with what was thrown; elsewhere nothing has happened but that the
// context's log is given a line, where there is one.
//
// Internal to runtime/api/c.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "runtime/api/c/eddy.h"

namespace eddy::c {

// The code that `function` returns. What it throws: EDDY_RUN_FAILED, and `said` says so.
template <typename Function>
eddy_code code_of(std::string& said, const Function& function) noexcept {
  try {
    return function();
  } catch (const std::exception& thrown) {
    said = std::string("it threw: ") + thrown.what();
  } catch (...) {
    said = "it threw something";
  }
  return EDDY_RUN_FAILED;
}

// Whether `function`, which returns nothing, has thrown nothing.
template <typename Function>
bool has_returned(std::string& said, const Function& function) noexcept {
  return code_of(said, [&]() -> eddy_code { return function(), EDDY_OK; }) == EDDY_OK;
}
template <typename Function>
void call_and_forget(const Function& function) noexcept {
  std::string ignored;
  has_returned(ignored, function);
}

}  // namespace eddy::c
