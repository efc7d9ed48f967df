#include "runtime/api/session_core.h"

namespace eddy {

Scheduler& SessionCore::scheduler() {
  std::call_once(scheduler_made, [this] { scheduler_or_null = std::make_unique<Scheduler>(); });
  return *scheduler_or_null;
}

Status SessionCore::enter(Run& run) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return is_closed || runs.size() < options.max_runs_in_flight; });
  if (is_closed) return cancelled("the session is closed");
  runs.push_back(&run);
  return Status::ok();
}

bool SessionCore::try_enter_or_queue(Run& run, std::function<void()> start, Status& status) {
  std::lock_guard lock(mutex);
  if (is_closed) {
    status = cancelled("the session is closed");
    return false;
  }
  if (runs.size() >= options.max_runs_in_flight) {
    queued.emplace_back(&run, std::move(start));
    return false;
  }
  runs.push_back(&run);
  return true;
}

void SessionCore::leave(Run& run) {
  std::function<void()> start_next;
  {
    std::lock_guard lock(mutex);
    std::erase(runs, &run);
    if (!queued.empty()) {
      runs.push_back(queued.front().first);
      start_next = std::move(queued.front().second);
      queued.pop_front();
    }
    // Under the mutex: a waiting close() may end the session as soon as it sees no runs.
    changed.notify_all();
  }
  if (start_next) start_next();
}

}  // namespace eddy
