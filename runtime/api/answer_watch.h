// AnswerWatch: notices that a run which was stopped cannot end, because an answer that a kernel or
// host function owes it does not come.
//
// A stop frees nothing that an owed answer may still write (ops/contract/pending_call.h): the run
// goes on until the answer is there. `limit` after the stop the watch calls `look` on the
// scheduler's thread, and again each `limit` until that returns true, or the run has ended.
//
// Internal to runtime/api. Ownership: shared with the run's control, which it listens to, and the
// timer. Threads: on_stop from any; end() by the thread that ends the run: when it returns, `look`
// is not running and never will.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "runtime/api/deadline_timer.h"
#include "runtime/device/strand_runner.h"

namespace eddy {

class AnswerWatch : public StopListener, public std::enable_shared_from_this<AnswerWatch> {
 public:
  // The scheduler outlives it.
  AnswerWatch(Scheduler& scheduler, std::chrono::nanoseconds limit, std::function<bool()> look)
      : scheduler_(scheduler), limit_(limit), look_(std::move(look)) {}

  void on_stop() override;
  void end();

 private:
  void arm();  // under the mutex
  void fire();

  Scheduler& scheduler_;
  const std::chrono::nanoseconds limit_;
  const std::function<bool()> look_;
  std::mutex mutex_;
  // Under the mutex, but for its disarming at the end.
  bool is_over_ = false;
  DeadlineTimer timer_;
};

}  // namespace eddy
