// RunScope: whose runs the current thread executes work of, so that a wait for one of them is
// refused instead of never ending (runtime/api/session_scope.h).
//
// Not around what suspends: a fiber that goes on elsewhere would take the mark with it. The owner
// is compared only, and may be gone when the scope ends. Cost: two accesses to a thread's own
// memory.
#pragma once

namespace eddy {

class RunScope {
 public:
  // `owner`: RunControl::owner.
  explicit RunScope(const void* owner) : owner_(owner), outer_(innermost) { innermost = this; }
  ~RunScope() { innermost = outer_; }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  static bool is_inside(const void* owner);

 private:
  static thread_local constinit const RunScope* innermost;

  const void* const owner_;
  const RunScope* const outer_;
};

}  // namespace eddy
