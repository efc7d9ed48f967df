#include "runtime/coroutine/timers.h"

#include <utility>

#include "graph/base/check.h"

namespace eddy {

Timers::Added Timers::add(Clock::time_point when, Callback callback) {
  EDDY_CHECK(callback != nullptr) << "a timer needs a callback";
  std::lock_guard lock(mutex_);
  const TimerId id{when, ++last_sequence_};
  const auto [place, is_new] = pending_.emplace(id, std::move(callback));
  EDDY_DCHECK(is_new) << "two timers have the number " << id.sequence;
  publish_next();
  return {id, place == pending_.begin()};
}

bool Timers::cancel(const TimerId& id) {
  Callback dropped;  // destroyed after the lock is gone: it may own anything
  std::lock_guard lock(mutex_);
  const auto place = pending_.find(id);
  if (place == pending_.end()) return false;
  dropped = std::move(place->second);
  pending_.erase(place);
  publish_next();
  return true;
}

Timers::Callback Timers::pop_due(Clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (pending_.empty() || pending_.begin()->first.when > now) return nullptr;
  Callback due = std::move(pending_.begin()->second);
  pending_.erase(pending_.begin());
  publish_next();
  return due;
}

void Timers::publish_next() {
  std::int64_t next = kNever;
  if (!pending_.empty()) {
    next = std::chrono::duration_cast<std::chrono::nanoseconds>(
               pending_.begin()->first.when.time_since_epoch())
               .count();
  }
  next_ns_.store(next, std::memory_order_relaxed);
}

}  // namespace eddy
