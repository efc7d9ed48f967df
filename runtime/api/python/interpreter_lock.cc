#include "runtime/api/python/interpreter_lock.h"

#include <atomic>

namespace eddy::python {
namespace {

// A process ends once. Set before any run is cancelled for it: what sees the cancel sees it, too.
std::atomic<bool> is_ending{false};
thread_local bool goes_on_at_the_end = false;

}  // namespace

void begin_the_end() {
  goes_on_at_the_end = true;
  is_ending.store(true);
}
void go_on_at_the_end() { goes_on_at_the_end = true; }
bool must_wait_for_the_end() { return is_ending.load() && !goes_on_at_the_end; }

}  // namespace eddy::python
