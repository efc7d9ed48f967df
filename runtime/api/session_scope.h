// SessionScope: marks the current thread as running a session's host function or callback, so
// that waiting there for a run of the same session is refused instead of deadlocking.
#pragma once

namespace eddy {

class SessionScope {
 public:
  explicit SessionScope(const void* session);
  ~SessionScope();
  SessionScope(const SessionScope&) = delete;
  SessionScope& operator=(const SessionScope&) = delete;

  // True inside a scope of `session` on this thread.
  static bool is_inside(const void* session);

 private:
  const void* session_;
  const SessionScope* outer_;
};

}  // namespace eddy
