#include "runtime/api/deadline_timer.h"

#include <thread>
#include <utility>

#include "runtime/coroutine/scheduler.h"

namespace eddy {

void DeadlineTimer::arm(Scheduler& scheduler, std::chrono::steady_clock::time_point when,
                        std::function<void()> fire) {
  scheduler_ = &scheduler;
  has_fired_ = std::make_shared<std::atomic<bool>>(false);
  timer_ = scheduler.run_at(when, [fire = std::move(fire), has_fired = has_fired_] {
    fire();
    has_fired->store(true, std::memory_order_release);
  });
}

void DeadlineTimer::disarm() {
  Scheduler* const scheduler = std::exchange(scheduler_, nullptr);
  if (scheduler == nullptr || scheduler->cancel_timer(timer_)) return;
  // It fires right now or has fired.
  while (!has_fired_->load(std::memory_order_acquire)) std::this_thread::yield();
}

}  // namespace eddy
