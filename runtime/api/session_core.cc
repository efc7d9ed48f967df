#include "runtime/api/session_core.h"

#include <algorithm>

namespace eddy {

SessionCore::~SessionCore() {
  for (const PollerId poller : pollers) scheduler().remove_poller(poller);
  if (device) device->remove_waker(this);
  if (accelerator_or_null) accelerator_or_null->device->remove_waker(this);
}

Status SessionCore::enter(Run& run, Deadline deadline) {
  std::unique_lock lock(mutex);
  const uint64_t cancels = num_cancels;
  const auto may_go_on = [&] { return is_closed || num_cancels != cancels || has_turn(); };
  const bool is_late = !wait_until_true(lock, may_go_on, deadline) ||
                       (deadline && std::chrono::steady_clock::now() >= *deadline);
  if (is_closed) return cancelled("the session is closed");
  if (num_cancels != cancels) {
    return cancelled("the run was cancelled while it waited for its turn");
  }
  if (is_late) {
    return deadline_exceeded("the run passed its deadline while it waited for its turn");
  }
  runs.push_back(&run);
  return Status::ok();
}

bool SessionCore::try_enter_or_queue(Waiting waiting, Status& status) {
  std::lock_guard lock(mutex);
  if (is_closed) {
    status = cancelled("the session is closed");
    return false;
  }
  if (!has_turn()) {
    queued.push_back(std::move(waiting));
    return false;
  }
  runs.push_back(waiting.run);
  return true;
}

std::function<void(Status)> SessionCore::leave_queue(const Run& run) {
  std::lock_guard lock(mutex);
  const auto it = std::find_if(queued.begin(), queued.end(),
                               [&](const Waiting& waiting) { return waiting.run == &run; });
  if (it == queued.end()) return {};
  std::function<void(Status)> give_up = std::move(it->give_up);
  queued.erase(it);
  ++num_leaving;
  return give_up;
}

void SessionCore::cancel_all(bool is_closing) {
  std::deque<Waiting> waiting;
  {
    std::lock_guard lock(mutex);
    is_closed = is_closed || is_closing;
    ++num_cancels;
    for (Run* run : runs) run->stop(StopReason::kCancelled);
    waiting.swap(queued);
    ++num_leaving;
    changed.notify_all();
  }
  for (Waiting& one : waiting) {
    one.give_up(cancelled("the run was cancelled while it waited for its turn"));
  }
  waiting.clear();
  end_leaving();
}

namespace {

// Why a loop that the device can drive was not driven by it this time.
const char* not_by_device(const SessionOptions& options) {
  const bool is_measured = options.loops == Loops::kAuto && options.measure_loops;
  return is_measured ? "it is measured, could not be recorded, or devices drove as many loops as "
                       "they may"
                     : "it could not be recorded, or devices drove as many loops as they may";
}

}  // namespace

void SessionCore::report_loops(const Run& run) {
  for (size_t i = 0; i < loop_nodes.size(); ++i) {
    last_loops[i].iterations = run.iterations(loop_nodes[i]);
    if (loops[i].driven == "host" || accelerator_or_null == nullptr) continue;
    // One that has not been entered is as it would have been.
    const bool is_driven = run.is_driven_by_device(loop_nodes[i]) || last_loops[i].iterations == 0;
    last_loops[i].driven = is_driven ? "device" : "host";
    const LoopChoice* choice = program->loop_choice_or_null(loop_nodes[i]);
    const std::string measured = choice == nullptr ? "" : choice->text();
    last_loops[i].reason = !measured.empty() ? measured
                           : is_driven       ? loops[i].reason
                                             : not_by_device(options);
  }
}

std::function<void()> SessionCore::take_out(const Run& run, bool with_report) {
  if (with_report) report_loops(run);
  std::erase(runs, &run);
  changed.notify_all();  // others may have their turn
  if (queued.empty()) return {};
  runs.push_back(queued.front().run);
  std::function<void()> start_next = std::move(queued.front().start);
  queued.pop_front();
  return start_next;
}

void SessionCore::leave(Run& run) {
  std::function<void()> start_next;
  {
    std::lock_guard lock(mutex);
    start_next = take_out(run, /*with_report=*/run.has_made_outputs());
    if (!start_next) return;
    ++num_leaving;
  }
  start_next();
  end_leaving();
}

void SessionCore::end_leaving() {
  std::lock_guard lock(mutex);
  --num_leaving;
  // Under the mutex: a waiting close() may end the session as soon as it is idle.
  changed.notify_all();
}

void SessionCore::hold() {
  std::lock_guard lock(mutex);
  ++num_leaving;
}

void SessionCore::leave_stream() {
  std::lock_guard lock(mutex);
  --num_behind_streams;
  changed.notify_all();
}

void SessionCore::begin_leaving(Run& run, bool with_report) {
  std::function<void()> start_next;
  {
    std::lock_guard lock(mutex);
    start_next = take_out(run, with_report);
    ++num_leaving;
  }
  if (start_next) start_next();
}

SessionCore::Deadline deadline_of(const RunOptions& options) {
  using Clock = std::chrono::steady_clock;
  if (!options.timeout) return std::nullopt;
  const Clock::time_point now = Clock::now();
  if (*options.timeout >= Clock::time_point::max() - now) return std::nullopt;
  return now + std::max(*options.timeout, std::chrono::nanoseconds(0));
}

}  // namespace eddy
