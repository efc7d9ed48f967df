#include "runtime/api/session_scope.h"

namespace eddy {
namespace {
thread_local const SessionScope* innermost = nullptr;
}  // namespace

SessionScope::SessionScope(const void* session) : session_(session), outer_(innermost) {
  innermost = this;
}

SessionScope::~SessionScope() { innermost = outer_; }

bool SessionScope::is_inside(const void* session) {
  for (const SessionScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (scope->session_ == session) return true;
  }
  return false;
}

}  // namespace eddy
