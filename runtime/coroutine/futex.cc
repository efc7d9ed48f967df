#include "runtime/coroutine/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include "graph/base/check.h"

namespace eddy {

void futex_wait(const void* word, std::uint32_t expected,
                const std::chrono::steady_clock::time_point* deadline_or_null) {
  EDDY_DCHECK(reinterpret_cast<std::uintptr_t>(word) % sizeof(expected) == 0)
      << "a futex is an aligned word";
  timespec deadline{};
  if (deadline_or_null != nullptr) {
    const std::int64_t ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline_or_null->time_since_epoch())
            .count();
    if (ns <= 0) return;
    deadline.tv_sec = ns / 1'000'000'000;
    deadline.tv_nsec = ns % 1'000'000'000;
  }
  // The BITSET form takes an absolute time, on CLOCK_MONOTONIC as steady_clock has it.
  const long rc =
      syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
              deadline_or_null != nullptr ? &deadline : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
  EDDY_CHECK(rc == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT)
      << "futex wait: " << std::strerror(errno);
}

namespace {

// The word may be gone by now, so the answer is of no interest.
void futex_wake(const void* word, int count) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, 0);
}

}  // namespace

void futex_wake_one(const void* word) { futex_wake(word, 1); }
void futex_wake_all(const void* word) { futex_wake(word, INT_MAX); }

}  // namespace eddy
