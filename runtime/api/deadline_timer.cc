#include "runtime/api/deadline_timer.h"

#include <thread>
#include <utility>

#include "graph/base/check.h"
#include "runtime/coroutine/scheduler.h"

namespace eddy {

void DeadlineTimer::arm(Scheduler& scheduler, std::chrono::steady_clock::time_point when,
                        std::function<void()> fire) {
  EDDY_DCHECK(scheduler_ == nullptr) << "a timer is armed twice";
  scheduler_ = &scheduler;
  firing_ = std::make_shared<Firing>();
  timer_ = scheduler.run_at(when, [fire = std::move(fire), firing = firing_] {
    firing->thread.store(std::this_thread::get_id());
    fire();
    firing->is_over.store(true, std::memory_order_release);
  });
}

void DeadlineTimer::disarm_now() {
  Scheduler* const scheduler = std::exchange(scheduler_, nullptr);
  if (scheduler->cancel_timer(timer_)) return;
  // It fires right now or has fired.
  while (!firing_->is_over.load(std::memory_order_acquire)) {
    if (firing_->thread.load() == std::this_thread::get_id()) return;
    std::this_thread::yield();
  }
}

}  // namespace eddy
