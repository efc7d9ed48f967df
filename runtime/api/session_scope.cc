#include "runtime/api/session_scope.h"

#include "runtime/device/run_scope.h"

namespace eddy {
namespace {
thread_local const SessionScope* innermost = nullptr;
thread_local const void* stood_on = nullptr;
}  // namespace

SessionScope::SessionScope(const void* session, const void* threads_or_null)
    : session_(session), threads_(threads_or_null), outer_(innermost) {
  innermost = this;
}

SessionScope::~SessionScope() { innermost = outer_; }

bool SessionScope::is_marked(const void* session, const void* threads) {
  for (const SessionScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (scope->session_ == session) return true;
    if (scope->threads_ != nullptr && scope->threads_ == threads) return true;
  }
  return false;
}

void SessionScope::stand_on(const void* threads) { stood_on = threads; }

bool SessionScope::may_not_wait_for(const void* session, const void* threads) {
  const bool is_needed = threads != nullptr && stood_on == threads;
  return is_needed || is_marked(session, threads) || RunScope::is_inside(session);
}

}  // namespace eddy
