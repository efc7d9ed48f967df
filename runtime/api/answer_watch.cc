#include "runtime/api/answer_watch.h"

namespace eddy {

void AnswerWatch::on_stop() {
  const std::lock_guard lock(mutex_);
  if (!is_over_) arm();
}

void AnswerWatch::arm() {
  timer_.disarm();
  timer_.arm(scheduler_, std::chrono::steady_clock::now() + limit_,
             [self = shared_from_this()] { self->fire(); });
}

void AnswerWatch::fire() {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
  }
  if (look_()) return;
  const std::lock_guard lock(mutex_);
  if (!is_over_) arm();
}

void AnswerWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  timer_.disarm();
}

}  // namespace eddy
