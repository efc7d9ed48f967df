#include "runtime/api/session_core.h"

#include <algorithm>
#include <system_error>

#include "graph/base/check.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/device/no_thread.h"
#include "runtime/execute/device_pollers.h"

namespace eddy {

Status SessionCore::prepare_threads(const Needs& needs) {
  try {
    if (needs.callback) callbacks.prepare();
    if (needs.timer) (void)scheduler();
    if (needs.workers && !host().needs_polling()) threads->workers()->prepare();
  } catch (const std::system_error& error) {
    return no_thread(error);
  }
  return Status::ok();
}

SessionCore::~SessionCore() {
  for (Device* const polled : polled_devices) threads->device_pollers().remove(*polled);
}

namespace {

Status late() {
  return deadline_exceeded("the run passed its deadline while it waited for its turn");
}
Status closed() { return cancelled("the session is closed"); }

}  // namespace

// Under the mutex: takes a turn if one is free.
bool SessionCore::try_enter(Run& run) {
  if (options.max_runs_in_flight != 0 && num_turns >= options.max_runs_in_flight) return false;
  runs.push_back(&run);
  ++num_turns;
  return true;
}

// Under the mutex: whether one more may. Runs whose callbacks are to come hold the session.
Status SessionCore::may_wait() const {
  const size_t num_waiting = queue.size() + behind_streams.size() + num_holds;
  if (options.max_runs_waiting == 0 || num_waiting < options.max_runs_waiting) return Status::ok();
  return resource_exhausted(std::to_string(num_waiting) +
                            " runs wait already, as many as max_runs_waiting allows; wait for " +
                            "some of them first, or raise it");
}

Status SessionCore::may_submit() {
  std::lock_guard lock(mutex);
  return may_wait();
}

Status SessionCore::enter(Run& run, Deadline deadline) {
  using Answer = WaitingThread::Answer;
  std::unique_lock lock(mutex);
  if (is_closed) return closed();
  if (deadline && std::chrono::steady_clock::now() >= *deadline) return late();
  if (try_enter(run)) return Status::ok();
  EDDY_RETURN_IF_ERROR(may_wait());
  WaitingThread self;
  queue.push_back({.run = &run, .thread_or_null = &self});
  wait_until_true(
      lock, self.answered, [&] { return self.answer != Answer::kNone; }, deadline);
  if (self.answer == Answer::kTurn) return Status::ok();
  if (self.answer == Answer::kNone) {
    std::erase_if(queue, [&](const Waiting& waiting) { return waiting.run == &run; });
    settle(std::move(lock));
    return late();
  }
  Status status =
      is_closed ? closed() : cancelled("the run was cancelled while it waited for its turn");
  --num_holds;
  settle(std::move(lock));
  return status;
}

bool SessionCore::try_enter_or_queue(Waiting waiting, Status& status) {
  std::lock_guard lock(mutex);
  if (is_closed) {
    status = closed();
    return false;
  }
  if (try_enter(*waiting.run)) return true;
  queue.push_back(std::move(waiting));
  return false;
}

std::function<void(Status)> SessionCore::leave_queue(const Run& run) {
  std::lock_guard lock(mutex);
  const auto it = std::find_if(queue.begin(), queue.end(),
                               [&](const Waiting& waiting) { return waiting.run == &run; });
  if (it == queue.end()) return {};
  std::function<void(Status)> give_up = std::move(it->give_up);
  queue.erase(it);
  ++num_holds;
  return give_up;
}

void SessionCore::cancel_all(bool is_closing) {
  std::deque<Waiting> waiting;
  std::vector<std::function<void()>> cancel_behind_streams;
  {
    std::lock_guard lock(mutex);
    is_closed = is_closed || is_closing;
    for (Run* run : runs) run->stop(StopReason::kCancelled);
    for (Waiting& one : queue) {
      if (one.thread_or_null == nullptr) {
        waiting.push_back(std::move(one));
      } else {
        one.thread_or_null->answer = WaitingThread::Answer::kCancelled;
        one.thread_or_null->answered.notify_one();
        ++num_holds;  // until the thread has seen it
      }
    }
    queue.clear();
    for (const BehindStream& run : behind_streams) cancel_behind_streams.push_back(run.cancel);
    ++num_holds;
  }
  for (const std::function<void()>& cancel : cancel_behind_streams) cancel();
  cancel_behind_streams.clear();
  for (Waiting& one : waiting) {
    one.give_up(cancelled("the run was cancelled while it waited for its turn"));
  }
  waiting.clear();
  let_go();
}

void SessionCore::note_refusal(const Status& why) {
  {
    std::lock_guard lock(mutex);
    if (!why_not_recorded.empty()) return;
    why_not_recorded = why.message();
  }
  if (options.log) options.log("issued node by node, not recorded: " + why.message());
}

void SessionCore::report_loops(const Run& run) {
  for (size_t i = 0; i < loop_nodes.size(); ++i) {
    report_loop(run, i);
    if (why_not_recorded.empty() || last_loops[i].driven != "host") continue;
    if (loops[i].driven == "host") last_loops[i].reason = loops[i].reason;
    last_loops[i].reason += "; issued node by node, not recorded: " + why_not_recorded;
  }
}

void SessionCore::report_loop(const Run& run, size_t i) {
  last_loops[i].iterations = run.iterations(loop_nodes[i]);
  if (loops[i].driven == "host" || has_one_device()) return;
  // One that has not been entered is as it would have been.
  const bool is_driven = run.is_driven_by_device(loop_nodes[i]) || last_loops[i].iterations == 0;
  last_loops[i].driven = is_driven ? "device" : "host";
  const LoopChoice* choice = executable->loop_choice_or_null(loop_nodes[i]);
  const std::string measured = choice == nullptr ? "" : choice->text();
  last_loops[i].reason = !measured.empty() ? measured
                         : is_driven       ? loops[i].reason
                                           : run.why_by_host(loop_nodes[i]);
  const std::string how = is_driven ? run.how_by_device(loop_nodes[i]) : "";
  if (measured.empty() && !how.empty()) last_loops[i].reason += "; " + how;
}

// Under the mutex: the run is in flight no longer.
void SessionCore::take_out(const Run& run, bool with_report) {
  if (with_report) report_loops(run);
  std::erase(runs, &run);
}

// Under the mutex: a turn that somebody had goes to who has waited longest. What is returned starts
// a run that waits on no thread: to be called without locks; may be empty.
std::function<void()> SessionCore::pass_turn() {
  EDDY_CHECK(num_turns > 0) << "a run leaves that never entered";
  if (queue.empty()) {
    --num_turns;
    return {};
  }
  Waiting next = std::move(queue.front());
  queue.pop_front();
  runs.push_back(next.run);  // in the room of the one that left
  if (next.thread_or_null == nullptr) return std::move(next.start);
  // Under the mutex: the thread's answer is on its stack.
  next.thread_or_null->answer = WaitingThread::Answer::kTurn;
  next.thread_or_null->answered.notify_one();
  return {};
}

// The last to use the session says so to who waits, and ends it where nobody owns it any more: on
// the callback thread, because all others belong to threads that the session may own.
void SessionCore::settle(std::unique_lock<std::mutex> lock) {
  if (!is_idle()) return;
  // Under the mutex: who waits may end the session at once.
  idle.notify_all();
  if (!is_orphan) return;
  lock.unlock();
  if (callbacks.is_here()) {
    delete this;
  } else {
    callbacks.post([this] { delete this; });
  }
}

void SessionCore::leave(Run& run, bool with_report) {
  std::unique_lock lock(mutex);
  take_out(run, with_report);
  std::function<void()> start_next = pass_turn();
  settle(std::move(lock));
  if (start_next) start_run(std::move(start_next));  // it is in flight: so the session is there
}

void SessionCore::begin_leaving(Run& run, bool with_report) {
  std::lock_guard lock(mutex);
  take_out(run, with_report);
}

void SessionCore::end_leaving() {
  std::unique_lock lock(mutex);
  std::function<void()> start_next = pass_turn();
  settle(std::move(lock));
  if (start_next) start_run(std::move(start_next));
}

std::function<void()> SessionCore::give_turn_back() {
  std::lock_guard lock(mutex);
  ++num_holds;
  return pass_turn();
}

namespace {

// Runs that end as they start start the next: behind each other, not inside each other.
void call_in_a_row(std::function<void()> start) {
  thread_local std::deque<std::function<void()>>* row_or_null = nullptr;
  if (row_or_null != nullptr) return row_or_null->push_back(std::move(start));
  std::deque<std::function<void()>> row;
  row.push_back(std::move(start));
  row_or_null = &row;
  for (; !row.empty(); row.pop_front()) row.front()();
  row_or_null = nullptr;
}

}  // namespace

void SessionCore::start_run(std::function<void()> start) {
  if (executable->has_free_state()) return call_in_a_row(std::move(start));
  call_on_worker([start = std::move(start)]() mutable { call_in_a_row(std::move(start)); });
}

void SessionCore::call_on_worker(std::function<void()> function) {
  if (host().needs_polling()) return function();
  auto call = std::make_unique<std::function<void()>>(std::move(function));
  threads->workers()->enqueue(
      [](void* context) {
        const std::unique_ptr<std::function<void()>> own(
            static_cast<std::function<void()>*>(context));
        (*own)();
      },
      call.get());
  [[maybe_unused]] const auto* of_the_worker = call.release();
}

void SessionCore::hold() {
  std::lock_guard lock(mutex);
  ++num_holds;
}

void SessionCore::let_go() {
  std::unique_lock lock(mutex);
  --num_holds;
  settle(std::move(lock));
}

void SessionCore::enter_stream(BehindStream run) {
  std::lock_guard lock(mutex);
  behind_streams.push_back(std::move(run));
}

void SessionCore::leave_stream(const void* run) {
  std::function<void()> cancel;  // goes after the lock: it may hold the last of its run's handle
  std::unique_lock lock(mutex);
  const auto place = std::ranges::find(behind_streams, run, &BehindStream::run);
  EDDY_CHECK(place != behind_streams.end()) << "a run leaves a stream that it never entered";
  cancel = std::move(place->cancel);
  behind_streams.erase(place);
  settle(std::move(lock));
}

void SessionCore::orphan() {
  std::unique_lock lock(mutex);
  is_orphan = true;
  settle(std::move(lock));
}

SessionCore::Deadline deadline_of(const RunOptions& options) {
  using Clock = std::chrono::steady_clock;
  if (!options.timeout) return std::nullopt;
  const Clock::time_point now = Clock::now();
  if (*options.timeout >= Clock::time_point::max() - now) return std::nullopt;
  return now + std::max(*options.timeout, std::chrono::nanoseconds(0));
}

}  // namespace eddy
