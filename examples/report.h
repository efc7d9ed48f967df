// report: how an example ends. Prints the failed program and the reason to standard error; main
// returns the result.
#pragma once

#include <cerrno>  // program_invocation_short_name, of glibc
#include <cstdio>

#include "graph/base/status.h"

namespace eddy {

// The exit codes of the eddy command: 3 the input is bad, 4 the run failed. A run may fail with the
// code of a bad input; a program without inputs knows the difference and returns 4 itself.
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
