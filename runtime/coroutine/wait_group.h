// WaitGroup: waits until as many done() as add() were called.
//
// Contract: one waiter at a time, a task or a thread that is no scheduler. add() before the
// work is handed out, or while something counted is still unfinished. After wait() returns,
// the group is as new and may be used again or destroyed, even while the last done() is still
// on its way out: it touches nothing any more.
//
// Errors: a done() too many is a CHECK. Threads: add and done from any.
// Memory order: what was written before any done() is seen after wait().
// count_ starts at one, the waiter's own: so only the last done() sees zero, and only through
// zero_ does the waiter learn of it. That is what makes the lifetime promise true.
// Cost: add and done one atomic addition; the last one a Completion::notify.
#pragma once

#include <atomic>
#include <cstdint>

#include "graph/base/check.h"
#include "runtime/coroutine/completion.h"

namespace eddy {

class WaitGroup {
 public:
  void add(std::int64_t count = 1) {
    const std::int64_t before = count_.fetch_add(count, std::memory_order_relaxed);
    EDDY_CHECK(count >= 0 && before > 0) << "add(" << count << ") after the group ran out";
  }
  void done() {
    const std::int64_t before = count_.fetch_sub(1, std::memory_order_acq_rel);
    if (before == 1) {
      zero_.notify();
      return;
    }
    // Touches nothing that could be gone: before > 1 means that another is still counted.
    EDDY_CHECK(before > 1) << "done() was called more often than add()";
  }
  // `what` is shown by Scheduler::inspect and must live for ever (a literal).
  void wait(const char* what = "wait group") {
    const std::int64_t before = count_.fetch_sub(1, std::memory_order_acq_rel);
    EDDY_CHECK(before >= 1) << "done() was called more often than add(), or two wait at once";
    if (before != 1) zero_.wait(what);
    count_.store(1, std::memory_order_relaxed);
    zero_.reset();
  }

 private:
  std::atomic<std::int64_t> count_{1};
  Completion zero_;
};

}  // namespace eddy
