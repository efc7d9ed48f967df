// The kernel of eddy.HostPredicate: calls a function that the library's owner named.
#pragma once

#include "runtime/api/library.h"

namespace eddy {

inline bool is_host_predicate(const OpDef& op) {
  return op.domain == "eddy" && op.name == "HostPredicate";
}

// kNotFound when the library has no host function of the node's `name` attribute. The library
// must outlive the kernel; `session` and `threads` identify whose runs the function must not wait
// for; `log` (may be empty, must outlive the kernel) gets lines about non-blocking functions that
// were slow.
using LogFunction = std::function<void(std::string_view line)>;
Result<BoundKernel> bind_host_predicate(const Library& library, const void* session,
                                        const void* threads, const LogFunction& log,
                                        const KernelInit& init);

}  // namespace eddy
