#include "runtime/device/run_scope.h"

namespace eddy {

thread_local constinit const RunScope* RunScope::innermost = nullptr;

bool RunScope::is_inside(const void* owner) {
  for (const RunScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (owner != nullptr && scope->owner_ == owner) return true;
  }
  return false;
}

}  // namespace eddy
