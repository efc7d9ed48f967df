#include "runtime/api/session_core.h"

namespace eddy {

SessionCore::~SessionCore() {
  if (poller) scheduler().remove_poller(*poller);
}

Scheduler& SessionCore::scheduler() {
  std::call_once(scheduler_made, [this] { scheduler_or_null = std::make_unique<Scheduler>(); });
  return *scheduler_or_null;
}

Status SessionCore::enter(Run& run,
                          std::optional<std::chrono::steady_clock::time_point> deadline) {
  std::unique_lock lock(mutex);
  const auto may_go_on = [this] { return is_closed || has_turn(); };
  if (!deadline) {
    wait_until_true(lock, may_go_on);
  } else if (!changed.wait_until(lock, *deadline, may_go_on)) {
    return deadline_exceeded("the run passed its deadline while it waited for its turn");
  }
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
  if (!has_turn()) {
    queued.emplace_back(&run, std::move(start));
    return false;
  }
  runs.push_back(&run);
  return true;
}

void SessionCore::leave(Run& run) {
  begin_leaving(run);
  end_leaving();
}

void SessionCore::end_leaving() {
  std::lock_guard lock(mutex);
  --num_leaving;
  // Under the mutex: a waiting close() may end the session as soon as it is idle.
  changed.notify_all();
}

void SessionCore::begin_leaving(Run& run) {
  std::function<void()> start_next;
  {
    std::lock_guard lock(mutex);
    std::erase(runs, &run);
    if (!queued.empty()) {
      runs.push_back(queued.front().first);
      start_next = std::move(queued.front().second);
      queued.pop_front();
    }
    ++num_leaving;
    changed.notify_all();  // others may have their turn
  }
  if (start_next) start_next();
}

}  // namespace eddy
