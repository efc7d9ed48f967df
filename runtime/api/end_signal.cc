#include "runtime/api/end_signal.h"

#include <thread>

#include "graph/base/processor.h"

namespace eddy {

bool EndSignal::wait(const Wait& how) {
  const auto is_late = [&how] {
    return how.deadline_or_null != nullptr &&
           std::chrono::steady_clock::now() >= *how.deadline_or_null;
  };
  while (how.polled_or_null != nullptr && !is_set()) {
    if (is_late()) return is_set();
    if (!how.polled_or_null->poll()) std::this_thread::yield();
  }
  for (int spin = 0; spin < how.num_spins && !is_set(); ++spin) cpu_relax();
  while (!is_set()) {
    uint32_t clear = kClear;
    word_.compare_exchange_strong(clear, kAwaited, std::memory_order_relaxed);
    if (clear != kSet) futex_wait(&word_, kAwaited, how.deadline_or_null);
    if (is_late()) return is_set();
  }
  return true;
}

}  // namespace eddy
