// sleep_until: inside a task, waits until then; wakes for nothing else.
#pragma once

#include "graph/base/check.h"
#include "runtime/coroutine/completion.h"
#include "runtime/coroutine/scheduler.h"

namespace eddy {

inline void sleep_until(Scheduler::Clock::time_point when) {
  Scheduler* const scheduler = Scheduler::current_or_null();
  EDDY_CHECK(scheduler != nullptr) << "only a task may sleep";
  Completion due;
  scheduler->run_at(when, [&due] { due.notify(); });
  due.wait("timer");
}

}  // namespace eddy
