#include "runtime/api/session_runs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "runtime/api/session_scope.h"

namespace eddy {

Deadline deadline_in(std::chrono::nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point now = Clock::now();
  if (timeout >= Clock::time_point::max() - now) return std::nullopt;
  return now + std::max(timeout, std::chrono::nanoseconds(0));
}

Status stop_status(const RunEntry& run) {
  const std::string where = std::string(" while it waited for its ") +
                            (run.waited_in == RunPhase::kQueued ? "turn" : "stream");
  return run.stop == StopReason::kDeadline
             ? deadline_exceeded("the run passed its deadline" + where)
             : cancelled("the run was cancelled" + where);
}

void RunList::push_back(RunEntry& run) {
  run.previous_or_null = last_;
  run.next_or_null = nullptr;
  (last_ == nullptr ? first_ : last_->next_or_null) = &run;
  last_ = &run;
  ++size_;
}

void RunList::erase(RunEntry& run) {
  EDDY_DCHECK(size_ > 0 && (run.previous_or_null == nullptr) == (first_ == &run) &&
              (run.next_or_null == nullptr) == (last_ == &run))
      << "a run is taken out of a list that it is not in";
  (run.previous_or_null == nullptr ? first_ : run.previous_or_null->next_or_null) =
      run.next_or_null;
  (run.next_or_null == nullptr ? last_ : run.next_or_null->previous_or_null) = run.previous_or_null;
  --size_;
}

RunEntry* RunList::pop_front() {
  RunEntry* const run = first_;
  if (run != nullptr) erase(*run);
  return run;
}

RunList& RunQueue::of(const RunEntry& run) {
  return lists_[kNumPriorities - 1 - static_cast<size_t>(run.priority)];
}

RunEntry* RunQueue::first_or_null() const {
  for (const RunList& list : lists_) {
    if (list.size() > 0) return list.first_or_null();
  }
  return nullptr;
}

RunEntry* RunQueue::pop_front() {
  RunEntry* const run = first_or_null();
  if (run != nullptr) erase(*run);
  return run;
}

size_t RunQueue::size() const {
  size_t size = 0;
  for (const RunList& list : lists_) size += list.size();
  return size;
}

bool Turns::try_take(RunEntry& run) {
  if (max_ != 0 && num_taken_ >= max_) return false;
  EDDY_DCHECK(!run.has_turn) << "a run has its turn twice";
  ++num_taken_;
  run.has_turn = true;
  run.phase = RunPhase::kRunning;
  in_flight.push_back(run);
  return true;
}

void Turns::enqueue(RunEntry& run) {
  run.phase = RunPhase::kQueued;
  queue.push_back(run);
}

RunEntry* Turns::pass() {
  EDDY_CHECK(num_taken_ > 0) << "a run leaves that never entered";
  --num_taken_;
  RunEntry* const next = queue.pop_front();
  const bool goes_on = next == nullptr || try_take(*next);
  EDDY_DCHECK(goes_on) << "the turn that was left is not free";
  return next;
}

Status SessionRuns::check_wait(const EndSignal& signal) const {
  if (is_in_child()) return ForkGuard::error();
  return signal.is_set() ? Status::ok() : check_wait();
}

Status SessionRuns::check_wait() const {
  if (is_in_child()) return ForkGuard::error();
  if (!SessionScope::may_not_wait_for(waits_.session, waits_.threads)) return Status::ok();
  return would_deadlock(
      "a host function or callback may not wait for a run of its own session, nor a host function, "
      "or what a host-driven loop calls, for one of a session that shares its threads; submit the "
      "run, and go on when it has ended");
}

bool SessionRuns::wait(EndSignal& signal, bool spins, const Deadline& deadline) const {
  return signal.wait({.polled_or_null = waits_.polled_or_null.get(),
                      .num_spins = spins ? waits_.num_spins : 0,
                      .deadline_or_null = deadline ? &*deadline : nullptr});
}

// Runs whose callbacks are to come hold the session.
Status SessionRuns::may_wait() const {
  const size_t num_waiting = turns_.queue.size() + num_places_ + num_holds_;
  if (max_waiting_ == 0 || num_waiting < max_waiting_) return Status::ok();
  return resource_exhausted(std::to_string(num_waiting) +
                            " runs wait already, as many as max_runs_waiting allows; wait for " +
                            "some of them first, or raise it");
}

Status SessionRuns::may_submit() {
  std::lock_guard lock(lock_);
  return may_wait();
}

// Before the run waits there: once it does, its timer stops it.
Status SessionRuns::may_enter(RunEntry& run, RunPhase where) {
  run.stop = StopReason::kRunning;
  run.has_turn = false;
  if (is_closed_) return cancelled("the session is closed");
  if (!run.deadline || std::chrono::steady_clock::now() < *run.deadline) return Status::ok();
  run.stop = StopReason::kDeadline;
  run.waited_in = where;
  return stop_status(run);
}

SessionRuns::Admission SessionRuns::admit(RunEntry& run, Status& why) {
  why = may_enter(run, RunPhase::kQueued);
  if (!why.is_ok()) return Admission::kRefused;
  if (turns_.try_take(run)) return Admission::kTurn;
  if (run.is_waited_for && !(why = may_wait()).is_ok()) return Admission::kRefused;
  turns_.enqueue(run);
  return Admission::kQueued;
}

SessionRuns::Admission SessionRuns::enter(RunEntry& run, Status& why) {
  std::lock_guard lock(lock_);
  if (!run.is_waited_for && !(why = may_wait()).is_ok()) return Admission::kRefused;
  return admit(run, why);
}

Status SessionRuns::enter_stream(RunEntry& run, StreamEntry& place) {
  std::lock_guard lock(lock_);
  EDDY_RETURN_IF_ERROR(may_wait());
  EDDY_RETURN_IF_ERROR(may_enter(run, RunPhase::kBehindStream));
  run.phase = RunPhase::kBehindStream;
  run.place_or_null = &place;
  behind_.push_back(run);
  ++num_places_;
  return Status::ok();
}

bool SessionRuns::undo_enter_stream(RunEntry& run) {
  std::unique_lock lock(lock_);
  const bool is_behind = run.phase == RunPhase::kBehindStream;
  if (is_behind) {
    behind_.erase(run);
    run.phase = RunPhase::kEnded;
  }
  EDDY_DCHECK(num_places_ > 0) << "a stream is left that was not entered";
  --num_places_;
  settle(lock);
  return is_behind;
}

SessionRuns::Arrival SessionRuns::leave_stream(StreamEntry& place) {
  std::lock_guard lock(lock_);
  EDDY_DCHECK(num_places_ > 0) << "a stream is left that was not entered";
  --num_places_;
  ++num_holds_;
  Arrival arrival;
  arrival.run_or_null = std::exchange(place.run_or_null, nullptr);
  if (arrival.run_or_null == nullptr) return arrival;
  RunEntry& run = *arrival.run_or_null;
  EDDY_DCHECK(run.phase == RunPhase::kBehindStream) << "a run behind a stream is elsewhere";
  behind_.erase(run);
  arrival.admission = admit(run, arrival.why);
  if (arrival.admission == Admission::kRefused) {
    run.phase = RunPhase::kEnding;
    ++num_holds_;
  }
  return arrival;
}

void SessionRuns::reach(RunEntry& run, BoundRun& state) {
  std::lock_guard lock(lock_);
  EDDY_DCHECK(run.phase == RunPhase::kRunning && run.has_turn) << "a run without a turn is begun";
  run.state_or_null = &state;
  if (run.stop != StopReason::kRunning) state.control.request_stop(run.stop);
}

void SessionRuns::make_ready(RunEntry& run, const std::function<void()>& send) {
  std::lock_guard lock(lock_);
  EDDY_DCHECK(run.phase == RunPhase::kRunning && run.state_or_null != nullptr)
      << "a run without a turn or state is ready";
  turns_.in_flight.erase(run);
  run.phase = RunPhase::kReady;
  ready_.push_back(run);
  if (num_sent_ >= ready_.size()) return;
  ++num_sent_;
  send();
}

RunEntry* SessionRuns::take_ready() {
  std::lock_guard lock(lock_);
  EDDY_CHECK(num_sent_ > 0) << "a worker comes that was not sent";
  --num_sent_;
  RunEntry* const run = ready_.pop_front();
  if (run != nullptr) begin_ready(*run);
  return run;
}

bool SessionRuns::claim(RunEntry& run) {
  std::lock_guard lock(lock_);
  if (run.phase != RunPhase::kReady) return false;
  ready_.erase(run);
  begin_ready(run);
  return true;
}

void SessionRuns::begin_ready(RunEntry& run) {
  EDDY_DCHECK(run.phase == RunPhase::kReady && run.has_turn) << "a run that is not ready is begun";
  run.phase = RunPhase::kRunning;
  turns_.in_flight.push_back(run);
}

// What stops a run reaches into its state.
void SessionRuns::await_stops(const RunEntry& run, std::unique_lock<ShortLock>& lock) {
  if (run.num_stopping > 0) stopped_.wait(lock, [&run] { return run.num_stopping == 0; });
}

void SessionRuns::await_stops(const RunEntry& run) {
  std::unique_lock lock(lock_);
  await_stops(run, lock);
}

void SessionRuns::withdraw(RunEntry& run) {
  std::unique_lock lock(lock_);
  await_stops(run, lock);
  EDDY_DCHECK(run.phase == RunPhase::kRunning) << "a run is withdrawn that does not run";
  turns_.in_flight.erase(run);
  run.phase = RunPhase::kEnding;
  run.state_or_null = nullptr;
}

RunEntry* SessionRuns::leave(RunEntry& run, size_t num_holds, std::shared_ptr<void>& keeper) {
  std::unique_lock lock(lock_);
  await_stops(run, lock);
  EDDY_DCHECK(run.phase == RunPhase::kRunning || run.phase == RunPhase::kEnding)
      << "a run ends that has not begun, or twice";
  if (run.phase == RunPhase::kRunning) turns_.in_flight.erase(run);
  RunEntry* next = nullptr;
  if (run.has_turn) {
    next = turns_.pass();
  } else {
    EDDY_DCHECK(num_holds_ > 0) << "a run that waited does not hold its session";
    --num_holds_;
  }
  num_holds_ += num_holds;
  if (run.keeper != nullptr) {
    keeper.swap(run.keeper);
    ++num_holds_;
  }
  run.phase = RunPhase::kEnded;
  EDDY_DCHECK(!run.is_overdue || num_overdue_ > 0) << "an overdue run is not counted";
  if (std::exchange(run.is_overdue, false)) --num_overdue_;
  settle(lock);
  return next;
}

bool SessionRuns::keep(RunEntry& run, std::shared_ptr<void>& keeper) {
  std::lock_guard lock(lock_);
  if (run.phase == RunPhase::kEnded) return false;
  EDDY_DCHECK(run.keeper == nullptr) << "a run has two keepers";
  run.keeper = std::move(keeper);
  return true;
}

template <typename List>
void SessionRuns::end_wait(RunEntry& run, List& list) {
  list.erase(run);
  run.waited_in = std::exchange(run.phase, RunPhase::kEnding);
  ++num_holds_;
}

bool SessionRuns::stop_waiting(RunEntry& run, StopReason reason) {
  if (run.phase == RunPhase::kQueued) {
    end_wait(run, turns_.queue);
  } else if (run.phase == RunPhase::kBehindStream) {
    EDDY_DCHECK(run.place_or_null != nullptr && run.place_or_null->run_or_null == &run)
        << "a run behind a stream has another's place";
    std::exchange(run.place_or_null, nullptr)->run_or_null = nullptr;
    end_wait(run, behind_);
  } else {
    return false;
  }
  run.stop = reason;
  return true;
}

template <typename Visit>
void SessionRuns::for_each_begun(const Visit& visit) {
  turns_.in_flight.for_each(visit);
  ready_.for_each(visit);
}

// Whether it is to be stopped where it runs. Without a state it is as soon as it has one.
bool SessionRuns::begin_stop(RunEntry& run, StopReason reason) {
  const bool has_begun = run.phase == RunPhase::kRunning || run.phase == RunPhase::kReady;
  if (!has_begun || run.stop != StopReason::kRunning) return false;
  run.stop = reason;
  if (run.state_or_null == nullptr) return false;
  ++run.num_stopping;
  return true;
}

// Those of begin_stop().
void SessionRuns::stop_running(std::span<RunEntry* const> runs, StopReason reason,
                               std::unique_lock<ShortLock> lock) {
  if (runs.empty()) return;
  lock.unlock();
  for (RunEntry* const run : runs) run->state_or_null->control.request_stop(reason);
  lock.lock();
  for (RunEntry* const run : runs) {
    EDDY_DCHECK(run->num_stopping > 0) << "a run goes while it is stopped";
    --run->num_stopping;
  }
  stopped_.notify_all();
}

bool SessionRuns::stop(RunEntry& run, StopReason reason) {
  std::unique_lock lock(lock_);
  if (stop_waiting(run, reason)) return true;
  RunEntry* const running = &run;
  if (begin_stop(run, reason)) stop_running({&running, 1}, reason, std::move(lock));
  return false;
}

RunList SessionRuns::stop_all(bool is_closing) {
  RunList ended;
  std::vector<RunEntry*> running;
  std::unique_lock lock(lock_);
  is_closed_ = is_closed_ || is_closing;
  ++num_holds_;
  for_each_begun([&](RunEntry& run) {
    if (begin_stop(run, StopReason::kCancelled)) running.push_back(&run);
  });
  const auto stop_first = [&](RunEntry& run) {
    stop_waiting(run, StopReason::kCancelled);
    ended.push_back(run);
  };
  while (RunEntry* const run = turns_.queue.first_or_null()) stop_first(*run);
  while (RunEntry* const run = behind_.first_or_null()) stop_first(*run);
  stop_running(running, StopReason::kCancelled, std::move(lock));
  return ended;
}

void SessionRuns::note_overdue(RunEntry& run) {
  std::lock_guard lock(lock_);
  ++num_holds_;
  if (!std::exchange(run.is_overdue, true)) ++num_overdue_;
}

bool SessionRuns::is_owing(const RunEntry& run) {
  return run.is_overdue && run.phase == RunPhase::kRunning && run.state_or_null != nullptr &&
         !run.state_or_null->owing_nodes().empty();
}

bool SessionRuns::owes(const RunEntry& run) {
  std::lock_guard lock(lock_);
  return is_owing(run);
}

bool SessionRuns::is_left_to_answers() const {
  size_t num_owing = 0;
  turns_.in_flight.for_each([&](const RunEntry& run) { num_owing += is_owing(run) ? 1 : 0; });
  return num_owing > 0 && turns_.num_taken() == num_owing && turns_.queue.size() == 0 &&
         behind_.size() == 0 && num_holds_ == 0;
}

void SessionRuns::hold() {
  std::lock_guard lock(lock_);
  ++num_holds_;
}

void SessionRuns::let_go() {
  std::unique_lock lock(lock_);
  EDDY_DCHECK(num_holds_ > 0) << "a session is let go that was not held";
  --num_holds_;
  settle(lock);
}

// The last to use the session wakes the thread that waits for that, which may end the session at
// once, or ends the session itself.
void SessionRuns::settle(std::unique_lock<ShortLock>& lock) {
  if (num_waiting_until_idle_ > 0 && (is_unused() || num_overdue_ > 0)) idle_.notify_all();
  if (!end_session_ || !is_unused()) return;
  const std::function<void()> end = std::exchange(end_session_, nullptr);
  lock.unlock();
  end();
}

template <typename IsOver>
void SessionRuns::wait_until(const IsOver& is_over) {
  std::unique_lock lock(lock_);
  ++num_waiting_until_idle_;
  while (waits_.polled_or_null != nullptr && !is_over()) {
    lock.unlock();
    const bool has_moved = waits_.polled_or_null->poll();
    lock.lock();
    if (!has_moved && !is_over()) idle_.wait_for(lock, std::chrono::microseconds(50));
  }
  idle_.wait(lock, is_over);
  --num_waiting_until_idle_;
}

void SessionRuns::wait_until_idle() {
  wait_until([this] { return is_unused(); });
}

void SessionRuns::wait_until_overdue() {
  wait_until([this] { return is_unused() || is_left_to_answers(); });
}

bool SessionRuns::is_idle() {
  std::lock_guard lock(lock_);
  return is_unused();
}

void SessionRuns::orphan(std::function<void()> end) {
  std::unique_lock lock(lock_);
  EDDY_DCHECK(!end_session_) << "a session is an orphan twice";
  end_session_ = std::move(end);
  settle(lock);
}

RunCounts SessionRuns::counts() {
  std::lock_guard lock(lock_);
  return {turns_.in_flight.size() + ready_.size(), turns_.queue.size() + behind_.size()};
}

std::string SessionRuns::describe() {
  std::lock_guard lock(lock_);
  std::string text = std::to_string(turns_.in_flight.size() + ready_.size()) +
                     " run(s) in flight, " + std::to_string(turns_.queue.size()) +
                     " waiting for their turn\n";
  size_t number = 0;
  for_each_begun([&](const RunEntry& run) {
    text += "run " + std::to_string(number++) + ":\n";
    text += run.phase == RunPhase::kReady  ? "  waits for a worker\n"
            : run.state_or_null == nullptr ? "  about to start\n"
                                           : run.state_or_null->describe();
  });
  return text;
}

}  // namespace eddy
