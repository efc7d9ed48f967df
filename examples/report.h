// report: how an example ends. Prints on standard error which program failed and why; the result is
// for main.
#pragma once

#include <cerrno>  // program_invocation_short_name, of glibc
#include <cstdio>

#include "graph/base/status.h"

namespace eddy {

// As the eddy command's: 3 the input is bad, 4 the run failed. A run may fail with the code of a
// bad input; a program that has no inputs can tell, and returns 4 itself.
inline int exit_code(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kUnsupported:
      return 3;
    default:
      return 4;
  }
}

inline int report(const Status& status) {
  if (!status.is_ok()) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, status.to_string().c_str());
  }
  return exit_code(status);
}

}  // namespace eddy
