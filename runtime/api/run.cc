#include "runtime/api/run.h"

#include <algorithm>
#include <thread>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "runtime/api/session_core.h"
#include "runtime/api/session_scope.h"
#include "runtime/coroutine/futex.h"

namespace eddy {

Run::Run(SessionCore& core, TraceRecorder* trace_or_null)
    : core_(core), trace_or_null_(trace_or_null) {
  is_bound_.resize(core.graph.inputs().size(), false);
  bound_outputs_.resize(core.graph.outputs().size());
  bound_dims_.resize(core.graph.outputs().size());
  is_on_device_.resize(core.graph.outputs().size(), false);
}

Run::~Run() {
  if (state_ != nullptr) drop_state();
  end_streams(cancelled("the run ended before it began"));
}

Status Run::give_streams(const std::vector<StreamedOutput>& streams) {
  const Graph& graph = core_.graph;
  for (const StreamedOutput& each : streams) {
    if (each.stream == nullptr) return invalid_argument("a streamed output has no stream");
    streams_.push_back({each.stream, {}, 0});  // ended, whatever happens
  }
  if (!streams.empty() && trace_or_null_ != nullptr) {
    return invalid_argument("a traced run streams no outputs; trace another run");
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    const std::string& name = streams[i].output;
    const auto is_it = [&](const ValueDescription& output) { return output.name == name; };
    const auto found = std::ranges::find_if(core_.outputs, is_it);
    if (found == core_.outputs.end()) return not_found("there is no output '" + name + "'");
    const auto index = static_cast<size_t>(found - core_.outputs.begin());
    const ValueInfo& made = graph.value(graph.outputs()[index]);
    const bool is_of_loop = made.origin == ValueOrigin::kNodeOutput &&
                            graph.node(made.producer).kind == NodeKind::kWhile;
    if (!is_of_loop || made.index < LoopView(graph, made.producer).num_forwarded()) {
      return invalid_argument(
          "output '" + name +
          "' cannot be streamed: only rows that a loop of the graph itself stacks can, one in each "
          "iteration (a scan output)");
    }
    const LoopView loop(graph, made.producer);
    streams_[i].loop = made.producer;
    streams_[i].row = static_cast<uint32_t>(loop.num_carried() + made.index - loop.num_forwarded());
  }
  return Status::ok();
}

void Run::begin_streams() {
  for (const Streamed& each : streams_) {
    state_->loop(each.loop).stack(each.row).sink_or_null = each.stream.get();
    each.stream->begin([&core = core_](std::function<void()> deliver) {
      core.callbacks.post([&core, deliver = std::move(deliver)] {
        const SessionScope scope(&core, nullptr);
        deliver();
      });
    });
  }
}

void Run::end_streams(const Status& status) {
  for (const Streamed& each : streams_) each.stream->end(status);
  streams_.clear();
}

void Run::take_state() {
  EDDY_CHECK(state_ == nullptr) << "a run takes two states";
  state_ = trace_or_null_ != nullptr ? core_.executable->make_traced(*trace_or_null_)
           : streams_.empty()        ? core_.executable->acquire()
                                     : core_.executable->acquire_streaming();
  begin_streams();
  state_->control.on_complete = &Run::on_complete;
  state_->control.context = this;
  for (size_t i = 0; i < given_.size(); ++i) put(i, *given_[i]);
  reached_or_null_.store(state_.get());
  if (const StopReason wish = wish_.load(); wish != StopReason::kRunning) {
    state_->control.request_stop(wish);
  }
}

void Run::drop_state() {
  EDDY_CHECK(is_done()) << "a run in progress loses its state";
  reached_or_null_.store(nullptr, std::memory_order_relaxed);
  // What the slots hold of the caller's goes before the state is used again.
  for (size_t i = 0; i < is_bound_.size(); ++i) state_->slot(core_.graph.inputs()[i]).set_none();
  for (size_t i = 0; i < bound_outputs_.size(); ++i) state_->unbind_output(i);
  state_->reset();
  // A cancel may have come after the run had ended; nobody reaches the state now.
  state_->control.stop.store(StopReason::kRunning, std::memory_order_relaxed);
  if (trace_or_null_ != nullptr) return state_.reset();
  core_.executable->release(std::move(state_));
}

void Run::forget_stop() {
  wish_.store(StopReason::kRunning, std::memory_order_relaxed);
  if (state_ != nullptr)
    state_->control.stop.store(StopReason::kRunning, std::memory_order_relaxed);
}

void Run::stop(StopReason reason) {
  StopReason none = StopReason::kRunning;
  wish_.compare_exchange_strong(none, reason);
  if (RunState* const state = reached_or_null_.load()) state->control.request_stop(reason);
}

std::string Run::describe() const {
  const RunState* const state = reached_or_null_.load();
  return state == nullptr ? "  about to start\n" : state->describe();
}

void Run::on_complete(void* run) {
  Run& self = *static_cast<Run*>(run);
  self.state_->end_device_controls();
  if (self.deadline_ && std::chrono::steady_clock::now() > *self.deadline_) {
    self.stop(StopReason::kDeadline);
  }
  self.outcome_ = self.state_->control.stop.load(std::memory_order_acquire);
  const std::function<void()> on_done = std::move(self.on_done_);
  // From here on the waiter may destroy the run: its word is named once more, but not read.
  std::atomic<uint32_t>* const word = &self.done_;
  if (word->exchange(kDone, std::memory_order_release) == kAwaited) futex_wake_one(word);
  if (on_done) on_done();  // may destroy the run
}

void Run::arm_deadline(std::chrono::steady_clock::time_point when) {
  timer_.arm(core_.scheduler(), when,
             [control = &state_->control] { control->request_stop(StopReason::kDeadline); });
}

void Run::launch(bool on_this_thread, std::optional<std::chrono::steady_clock::time_point> deadline,
                 std::function<void()> on_done) noexcept {
  on_done_ = std::move(on_done);
  done_.store(kRunning, std::memory_order_relaxed);
  if (Status status = align_inputs(); !status.is_ok()) state_->control.fail(std::move(status));
  place_outputs();
  deadline_ = deadline;
  if (on_this_thread) {
    state_->runner->run_here(state_->control);
  } else {
    state_->runner->start(state_->control);
  }
}

void Run::wait() {
  while (core_.do_waiters_poll() && !is_done()) {
    if (!core_.host().poll()) std::this_thread::yield();
  }
  for (int spin = 0; spin < core_.num_wait_spins; ++spin) {
    if (is_done()) return;
    cpu_relax();
  }
  uint32_t running = kRunning;
  done_.compare_exchange_strong(running, kAwaited, std::memory_order_relaxed);
  while (!is_done()) futex_wait(&done_, kAwaited, nullptr);
}

Status Run::end_status() {
  switch (outcome_) {
    case StopReason::kRunning:
      return Status::ok();
    case StopReason::kFailed:
      return state_->take_error();
    case StopReason::kCancelled:
      return cancelled("the run was cancelled");
    case StopReason::kDeadline:
      return deadline_exceeded("the run passed its deadline");
  }
  return internal_error("unknown stop reason");
}

Status Run::finish() {
  timer_.disarm();
  Status status = end_status();
  if (status.is_ok()) status = std::move(copy_error_);
  if (!status.is_ok()) {
    state_->reset();
  } else {
    status = copy_outputs();
  }
  end_streams(status);
  return status;
}

}  // namespace eddy
