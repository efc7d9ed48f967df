// SessionScope: marks the current thread as running a session's host function or callback, so
// that waiting there for a run that needs this very thread is refused instead of deadlocking.
//
// A session calls back on one thread at a time: only that session's runs need a callback's. A
// host function stands on threads that sessions may share (SharedThreads): runs of all of these
// need them. A thread that executes kernels of a run is inside its session, too (run_scope.h).
#pragma once

namespace eddy {

class SessionScope {
 public:
  // `threads_or_null`: those that a host function stands on; null for a callback.
  SessionScope(const void* session, const void* threads_or_null);
  ~SessionScope();
  SessionScope(const SessionScope&) = delete;
  SessionScope& operator=(const SessionScope&) = delete;

  // This thread, to its end, is one that all sessions of `threads` need: their scheduler's.
  static void stand_on(const void* threads);
  // Whether a run of `session`, which uses `threads`, might never end if this thread waited.
  static bool may_not_wait_for(const void* session, const void* threads);
  // Whether this thread is inside a callback or host function of `session` itself.
  static bool is_inside(const void* session) { return is_marked(session, nullptr); }

 private:
  static bool is_marked(const void* session, const void* threads);

  const void* session_;
  const void* threads_;
  const SessionScope* outer_;
};

}  // namespace eddy
