#include "runtime/api/run.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <new>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/processor.h"
#include "runtime/api/session_core.h"
#include "runtime/api/session_scope.h"
#include "runtime/api/stream_place.h"
#include "runtime/device/run_scope.h"
#include "runtime/net/rank_session.h"
#include "runtime/net/world.h"

namespace eddy {
namespace {

Status no_memory() { return resource_exhausted("no memory for what a run needs"); }

// The run that this thread has begun for its waiter, which is this thread, too.
thread_local const Run* helped_here = nullptr;

}  // namespace

Run::Run(SessionCore& core, Kind kind, TraceRecorder* trace_or_null)
    : core_(core),
      runs_(core.runs),
      kind_(kind),
      values_(core, trace_or_null),
      collected_(kind == Kind::kOnce ? Collected::kAll : Collected::kNone) {
  if (kind != Kind::kKept) return;
  const Status status = values_.take_state();
  EDDY_CHECK(status.is_ok()) << "a run that was given nothing binds it: " << status.message();
}

bool Run::is_launched_here() const {
  return is_waited_for && !core_.is_host_driven() && core_.ranks == nullptr;
}

bool Run::needs_workers() const { return !is_launched_here() || !core_.has_one_strand; }

Status Run::begin(const RunOptions& options, bool calls_back) {
  const bool traces = kind_ == Kind::kKept && options.trace_or_null != nullptr;
  const bool is_plain = !needs_workers() && options.streams.empty() && !values_.is_streaming() &&
                        !options.timeout && !traces && !options.on_overdue;
  if (is_plain) {
    deadline.reset();
  } else {
    EDDY_RETURN_IF_ERROR(begin_with_threads(options, calls_back));
  }
  // Ranks run in one order.
  priority = core_.ranks == nullptr ? options.priority : Priority::kNormal;
  if (core_.ranks != nullptr) ticket_ = core_.ranks->take_ticket();
  if (kind_ == Kind::kOnce) return Status::ok();
  state_or_null = &values_.state();
  // No stop of an earlier time counts.
  state_or_null->control.stop.store(StopReason::kRunning, std::memory_order_relaxed);
  return answer_watch_ == nullptr ? Status::ok() : watch_answers();
}

Status Run::begin_with_threads(const RunOptions& options, bool calls_back) try {
  if (kind_ == Kind::kKept && options.trace_or_null != nullptr) {
    return invalid_argument("a Call is traced by the recorder that prepare() is given");
  }
  deadline = options.timeout ? deadline_in(*options.timeout) : std::nullopt;
  EDDY_RETURN_IF_ERROR(values_.give_streams(options.streams));
  if (kind_ == Kind::kKept) EDDY_RETURN_IF_ERROR(values_.adapt_state());
  const bool watches = kind_ == Kind::kKept && options.on_overdue && core_.ranks == nullptr;
  const bool calls_rows = std::ranges::any_of(options.streams, [](const StreamedOutput& each) {
    return each.stream->needs_callback_thread();
  });
  EDDY_RETURN_IF_ERROR(core_.prepare_threads({.callback = calls_back || watches || calls_rows,
                                              .timer = watches || deadline.has_value(),
                                              .workers = needs_workers()}));
  if (watches) {
    answer_watch_ = std::make_shared<AnswerWatch>(
        core_.scheduler(), options.answer_limit,
        [this, on_overdue = options.on_overdue] { return tell_overdue(on_overdue); });
  }
  if (deadline) timer_.arm(core_.scheduler(), *deadline, [this] { stop(StopReason::kDeadline); });
  return Status::ok();
} catch (const std::bad_alloc&) {
  return no_memory();
}

Status Run::status() const {
  if (!has_failed_.load(std::memory_order_acquire)) return Status::ok();
  const std::lock_guard lock(status_lock_);
  return status_;
}

void Run::set_status(Status status) {
  const bool has_failed = !status.is_ok();
  if (has_failed || has_failed_.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(status_lock_);
    status_ = std::move(status);
  }
  has_failed_.store(has_failed, std::memory_order_release);
}

Status Run::take_state() try { return values_.take_state(); } catch (const std::bad_alloc&) {
  return no_memory();
}

// Where each run has its turn at once: stops find the state from then on.
Status Run::take_state_before_turn() {
  if (kind_ != Kind::kOnce || runs_->has_limit()) return Status::ok();
  EDDY_RETURN_IF_ERROR(take_state());
  state_or_null = &values_.state();
  return Status::ok();
}

Status Run::refuse(const RunOptions& options, Status why) {
  if (kind_ == Kind::kOnce && values_.has_state()) values_.drop_state();
  if (core_.ranks != nullptr && !runs_->is_in_child()) abandon(why);
  timer_.disarm();
  end_answer_watch();
  values_.end_streams(why);
  for (const StreamedOutput& each : options.streams) {
    if (each.stream != nullptr) each.stream->refuse(why);
  }
  end_or_null_ = nullptr;
  gate_or_null_ = nullptr;
  set_status(why);
  signal_.set();
  return why;
}

Status Run::run(const RunOptions& options, Status ready) {
  signal_.clear();
  is_waited_for = true;
  if (ready.is_ok()) ready = runs_->check_wait(signal_);
  if (ready.is_ok()) ready = begin(options, false);
  if (ready.is_ok()) ready = take_state_before_turn();
  if (!ready.is_ok()) return refuse(options, std::move(ready));
  const SessionRuns::Admission admission = runs_->enter(*this, ready);
  if (admission == SessionRuns::Admission::kRefused) return refuse(options, std::move(ready));
  if (admission == SessionRuns::Admission::kQueued) {
    runs_->wait(signal_, false);
    if (phase == RunPhase::kEnded) return status_;
    signal_.clear();
  }
  if (launch()) {
    if (core_.ranks != nullptr) watch_ranks([&] { return has_begun_.load() || signal_.is_set(); });
    if (!signal_.is_set()) runs_->wait(signal_, true);
    end();
  }
  return status_;
}

Status Run::submit(const RunOptions& options, Status ready, Stream* stream_or_null,
                   std::shared_ptr<RunEnd> end_or_null, const std::function<void()>& begun) {
  signal_.clear();
  is_waited_for = false;
  is_submitters_ = false;
  if (ready.is_ok() && runs_->is_in_child()) ready = ForkGuard::error();
  if (ready.is_ok()) ready = begin(options, end_or_null != nullptr);
  if (!ready.is_ok()) return refuse(options, std::move(ready));
  end_or_null_ = std::move(end_or_null);
  if (begun) begun();
  if (stream_or_null != nullptr) {
    ready = enter(*stream_or_null);
    return ready.is_ok() ? ready : refuse(options, std::move(ready));
  }
  ready = take_state_before_turn();
  if (!ready.is_ok()) return refuse(options, std::move(ready));
  const SessionRuns::Admission admission = runs_->enter(*this, ready);
  if (admission == SessionRuns::Admission::kRefused) return refuse(options, std::move(ready));
  if (admission == SessionRuns::Admission::kTurn) launch(/*is_submitting=*/true);
  return Status::ok();
}

Status Run::enter(Stream& stream) {
  Device& device = core_.stream_device();
  EDDY_ASSIGN_OR_RETURN(gate_or_null_, device.create_gate());
  return StreamPlace::enter(device, stream, gate_or_null_, *runs_, *this, &Run::arrive);
}

void Run::arrive(const SessionRuns::Arrival& arrival) {
  Run& run = static_cast<Run&>(*arrival.run_or_null);
  if (arrival.admission == SessionRuns::Admission::kTurn) run.start();
  if (arrival.admission == SessionRuns::Admission::kRefused) run.end(arrival.why);
}

void Run::stop(StopReason reason) {
  if (runs_->stop(*this, reason)) end(stop_status(*this));
}

void Run::stop_all(SessionCore& core, bool is_closing) {
  RunList ended = core.runs->stop_all(is_closing);
  while (RunEntry* const run = ended.pop_front()) static_cast<Run*>(run)->end(stop_status(*run));
  core.runs->let_go();
}

void Run::start() {
  if (is_waited_for) return signal_.set();
  if (values_.has_state() || core_.run_pool->has_free_state()) return launch_in_a_row();
  core_.call_on_worker([this] { launch_in_a_row(); });
}

// Runs that end as they start start the next: behind each other, not inside each other.
void Run::launch_in_a_row() {
  thread_local std::deque<Run*>* row_or_null = nullptr;
  if (row_or_null != nullptr) return row_or_null->push_back(this);
  std::deque<Run*> row = {this};
  row_or_null = &row;
  for (; !row.empty(); row.pop_front()) row.front()->launch();
  row_or_null = nullptr;
}

bool Run::launch(bool is_submitting) noexcept {
  if (!values_.has_state()) {
    Status status = take_state();
    if (!status.is_ok()) {
      end(std::move(status));
      return false;
    }
    runs_->reach(*this, values_.state());
  }
  BoundRun& state = values_.state();
  state.control.on_complete = &Run::on_complete;
  state.control.context = this;
  state.control.owner = &core_;
  values_.begin();
  if (is_launched_here()) {
    state.runner().run_here(state.control);
  } else if (core_.ranks != nullptr) {
    begin_on_ranks();
  } else {
    start_strands(is_submitting);
  }
  return true;
}

void Run::start_strands(bool is_submitting) noexcept {
  BoundRun& state = values_.state();
  if (core_.starts_on_workers()) {
    // Runs that wait for a turn do not hold up the thread that passes it on, however many there
    // are.
    if (!is_submitting || !core_.executable->is_brief()) return send_worker();
    is_submitters_ = true;
    return state.runner().run_here(state.control);
  }
  state.runner().start(state.control);
}

void Run::begin_on_ranks() noexcept {
  EDDY_DCHECK(ticket_.has_value()) << "a run of ranks has no number";
  const uint64_t ticket = *std::exchange(ticket_, std::nullopt);
  has_begun_.store(false);
  BoundRun& state = values_.state();
  const auto where = [&state] {
    std::string paths;
    for (const NodeId node : state.owing_nodes()) {
      paths += (paths.empty() ? "" : ", ") + state.iteration_path(node);
    }
    return paths;
  };
  core_.ranks->begin(ticket, {state.control, values_.shared_facts(), where}, rank_run_or_null_,
                     [this](const Status& status) { on_begun(status); });
}

// Not ok: it ends as it starts, with why.
void Run::on_begun(const Status& status) {
  BoundRun& state = values_.state();
  has_begun_.store(true);
  if (!status.is_ok()) {
    rank_run_or_null_ = nullptr;
    refused_ = status;
    state.control.fail(status);
  }
  state.answering_stream_or_null = rank_run_or_null_;
  start_strands(/*is_submitting=*/false);
}

// Ranks agree within microseconds while each looks for what the others say; a thread that naps
// between two looks may be left behind a busy processor for milliseconds.
template <typename IsOver>
void Run::watch_ranks(const IsOver& is_over) {
  World& world = core_.ranks->world();
  const auto until = std::chrono::steady_clock::now() + world.spin();
  World::Watch watch(world);
  while (!is_over()) {
    if (std::chrono::steady_clock::now() >= until) return watch.leave();
    if (!watch.poll()) cpu_relax();
  }
}

// No run of its number will come from here.
void Run::abandon(const Status& why) {
  EDDY_DCHECK(core_.ranks != nullptr && !why.is_ok()) << "no ranks wait for the run";
  const uint64_t ticket = ticket_ ? *ticket_ : core_.ranks->take_ticket();
  ticket_.reset();
  core_.ranks->abandon(ticket, why);
}

// The worker may find that a thread that waits has come first; it takes another run then, or none.
void Run::send_worker() noexcept {
  Workers& workers = *core_.host().workers_or_null();
  const std::shared_ptr<SessionRuns> runs = runs_;  // the run may be gone when this returns
  runs->make_ready(*this, [&] {
    auto own = std::make_unique<std::shared_ptr<SessionRuns>>(runs);
    workers.enqueue(&Run::take_ready, own.get());
    [[maybe_unused]] const auto* of_the_worker = own.release();
  });
}

void Run::take_ready(void* context) {
  const std::unique_ptr<std::shared_ptr<SessionRuns>> runs(
      static_cast<std::shared_ptr<SessionRuns>*>(context));
  RunEntry* const run = (*runs)->take_ready();
  if (run == nullptr) return;
  BoundRun& state = static_cast<Run*>(run)->values_.state();
  state.runner().run_as_worker(state.control);
}

void Run::help() {
  if (!runs_->claim(*this)) return;
  BoundRun& state = values_.state();
  state.runner().run_here(state.control);
}

void Run::help_before_callbacks() {
  const Run* const outer = std::exchange(helped_here, this);
  help();
  helped_here = outer;
}

void Run::on_complete(void* run) {
  Run& self = *static_cast<Run*>(run);
  BoundRun& state = self.values_.state();
  state.end_device_loops();
  if (self.deadline && std::chrono::steady_clock::now() > *self.deadline) {
    state.control.request_stop(StopReason::kDeadline);
  }
  self.outcome_ = state.control.stop.load(std::memory_order_acquire);
  if (state.has_keeps()) {
    const RunScope scope(&self.core_);  // users' functions may end what was kept
    state.end_keeps();
  }
  if (self.is_waited_for) return self.signal_.set();
  // The scheduler's thread copies nothing: it is all host-driven loops'.
  const bool copies = self.outcome_ == StopReason::kRunning && self.core_.is_host_driven() &&
                      (self.values_.copies_bound() ||
                       (self.collected_ != Collected::kNone && self.values_.copies_collected()));
  if (!copies) return self.end();
  self.core_.call_on_worker([&self] { self.end(); });
}

Status Run::collect() {
  // The state of a stopped run is set back; a thread that stops it may still be looking at it.
  if (outcome_ != StopReason::kRunning) runs_->await_stops(*this);
  core_.loop_reports.count(values_.state());
  Status status = values_.finish(outcome_);
  if (!status.is_ok()) return status;
  core_.loop_reports.update(values_.state(), *core_.executable);
  core_.tell_notices();
  if (collected_ == Collected::kNone) return status;
  if (collected_ == Collected::kWanted) return values_.collect_outputs(wanted_, into_);
  outputs_ = values_.collect_outputs();
  return outputs_.status();
}

void Run::end(Status why) {
  end_answer_watch();
  if (rank_run_or_null_ != nullptr) return end_on_ranks();
  if (ticket_) abandon(why);
  Status status = why.is_ok() ? collect() : std::move(why);
  if (!refused_.is_ok()) status = std::exchange(refused_, Status());
  set_status(std::move(status));
  finish();
}

// Until all ranks agree how it has ended, stops still reach it.
void Run::end_on_ranks() {
  const bool waits = is_waited_for;
  if (waits) signal_.clear();
  Status own = collect();
  core_.ranks->end(*rank_run_or_null_, std::move(own), [this](Status agreed) {
    rank_run_or_null_ = nullptr;
    values_.state().answering_stream_or_null = nullptr;
    if (!agreed.is_ok()) outputs_ = agreed;
    set_status(std::move(agreed));
    if (is_waited_for) return signal_.set();
    finish();
  });
  if (!waits) return;  // it may be gone
  watch_ranks([&] { return signal_.is_set(); });
  runs_->wait(signal_, true);
  finish();
}

void Run::finish() {
  timer_.disarm();
  values_.end_streams(status_);
  if (kind_ == Kind::kOnce && has_turn) {
    runs_->withdraw(*this);
    if (values_.has_state()) values_.drop_state();
  }
  leave();
}

// Afterwards the session may be gone.
void Run::call_back(SessionCore& core, std::shared_ptr<RunEnd> end, Status status,
                    CallbackWake wake) {
  bool is_done = false;
  core.call_user([&] { is_done = end->end_at_once(end, status); });
  if (!is_done) return post_end(core, std::move(end), std::move(status), wake);
  end = nullptr;
  core.runs->let_go();
}

void Run::post_end(SessionCore& core, std::shared_ptr<RunEnd> end, Status status,
                   CallbackWake wake) {
  core.callbacks.post(
      [&core, end = std::move(end), status = std::move(status)]() mutable {
        {
          const SessionScope scope(&core, nullptr);
          core.call_user([&] { end->end(end, status); });
        }
        core.runs->let_go();
        if (end != nullptr) end->left(status);
      },
      wake);
}

void Run::call_back_refused(SessionCore& core, std::shared_ptr<RunEnd> end, Status why) {
  core.runs->hold();
  post_end(core, std::move(end), std::move(why), CallbackWake::kYes);
}

void Run::leave() {
  SessionCore& core = core_;
  std::shared_ptr<RunEnd> end = std::move(end_or_null_);
  std::shared_ptr<Gate> gate = std::move(gate_or_null_);
  Status status;
  if (end != nullptr) status = status_;
  const CallbackWake wake = helped_here == this ? CallbackWake::kNo
                            : is_submitters_    ? CallbackWake::kUnlessNapping
                                                : CallbackWake::kYes;
  std::shared_ptr<void> keeper;
  const size_t num_holds = (end != nullptr ? 1 : 0) + (gate != nullptr ? 1 : 0);
  RunEntry* const next = runs_->leave(*this, num_holds, keeper);
  // From here on the session may be gone, unless it is held or the next run is in flight.
  const bool had_gate = gate != nullptr;
  if (had_gate) gate->open();
  gate = nullptr;  // before the end is seen: nothing of a run that has ended is left
  if (!signal_.is_set()) signal_.set();
  // And this run, too.
  if (end != nullptr) call_back(core, std::move(end), std::move(status), wake);
  if (next != nullptr) static_cast<Run*>(next)->start();
  if (keeper != nullptr) {
    keeper = nullptr;
    core.runs->let_go();
  }
  if (had_gate) core.runs->let_go();
}

}  // namespace eddy
