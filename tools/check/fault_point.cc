#include "tools/check/fault_point.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "graph/base/check.h"
#include "runtime/api/run_handle.h"
#include "runtime/api/shared_threads.h"
#include "runtime/execute/run_state.h"
#include "tools/check/hash_ops.h"

namespace eddy::check {
namespace {

constexpr uint64_t kMaxTicks = 2'000'000;  // of one point
constexpr int kPattern = 0x77;

}  // namespace

FaultPoint::FaultPoint(const Recipe& recipe, FaultPointOptions options)
    : options_(std::move(options)), subject_(library_, recipe) {
  const Status status =
      add_hash_ops(library_, [this](std::span<const TensorView> inputs) { return choose(inputs); });
  EDDY_CHECK(status.is_ok()) << status.to_string();
}

FaultPoint::~FaultPoint() = default;

void FaultPoint::note(std::string violation) {
  std::lock_guard lock(mutex_);
  if (note_.empty()) note_ = std::move(violation);
}

std::string FaultPoint::take_note() {
  std::lock_guard lock(mutex_);
  return std::exchange(note_, std::string());
}

Status FaultPoint::inject(std::string path) {
  Status error = run_failed("told to fail " + rules_.inject(std::move(path)));
  return options_.plants.retell ? options_.plants.retell(std::move(error)) : error;
}

Status FaultPoint::Injector::before(RunState& state, const ::eddy::Step& step) {
  StepObserver* const planted = point_.options_.plants.observer_or_null;
  if (planted != nullptr) EDDY_RETURN_IF_ERROR(planted->before(state, step));
  if (point_.is_call_) point_.in_call_or_null_ = &state;
  if (state.control.is_stopped()) {
    point_.note(state.iteration_path(step.node) + " starts after its run was decided");
  }
  point_.at_work_or_null_ = &state;
  point_.node_at_work_ = step.node;
  const bool is_decision = step.kind == StepKind::kTest || step.kind == StepKind::kSelect;
  const FaultKind kind = is_decision ? FaultKind::kPredicate : FaultKind::kKernel;
  if (!is_decision && step.kind != StepKind::kExec) return Status::ok();
  if (!point_.plan_.should_fail(kind)) return Status::ok();
  return point_.inject(state.iteration_path(step.node));
}

void FaultPoint::Injector::after(RunState&, const ::eddy::Step&, int32_t) {}

void FaultPoint::watch(std::optional<RunHandle> first) {
  std::lock_guard lock(mutex_);
  first_ = std::move(first);
}

std::optional<RunHandle> FaultPoint::watched() {
  std::lock_guard lock(mutex_);
  return first_;
}

Result<int64_t> FaultPoint::choose(std::span<const TensorView> inputs) {
  if (!plan_.should_fail(FaultKind::kHostFunction)) return choose_by_hash(inputs);
  EDDY_CHECK(at_work_or_null_ != nullptr) << "a host function is called by no node";
  Status error = inject(at_work_or_null_->iteration_path(node_at_work_));
  if (num_points_ % 2 == 0) throw std::runtime_error(error.message());
  return error;
}

void FaultPoint::on_tick(uint64_t tick) {
  if (plan_.should_fail(FaultKind::kDeadline)) pass_deadline();
  if (plan_.should_fail(FaultKind::kCancel)) cancel();
  if (tick - first_tick_ != kMaxTicks) return;
  note("the runs still go on after " + std::to_string(kMaxTicks) + " steps");
  trial_->session().cancel_all();
}

void FaultPoint::cancel() {
  auto first = watched();
  if (first || in_call_or_null_ != nullptr) rules_.stop_run(0, FaultKind::kCancel);
  if (first && options_.loops != Loops::kHost) return first->cancel();
  trial_->session().cancel_all();
}

// Passes the deadline of the first run in flight, as its timer would; or of the prepared one.
void FaultPoint::pass_deadline() {
  const auto first = watched();
  if (first || in_call_or_null_ != nullptr) rules_.stop_run(0, FaultKind::kDeadline);
  if (first) return stop_run(*first, StopReason::kDeadline);
  if (in_call_or_null_ != nullptr) in_call_or_null_->control.request_stop(StopReason::kDeadline);
}

// Objects that are made once and reused fail only while they are made.
bool FaultPoint::needs_cold_start() const {
  return rules_.is_armed(FaultKind::kCreateStream) || rules_.is_armed(FaultKind::kCreateEvent) ||
         rules_.is_armed(FaultKind::kCreateGate) || max_stacks_ > 0;
}

std::string FaultPoint::start() {
  if (std::string text = start_cold(); !text.empty()) return text;
  return trial_->run(0);
}

std::string FaultPoint::start_cold() {
  TrialOptions options;
  options.order.seed = subject_.recipe().seed + 1;
  options.loops = options_.loops;
  options.wrap = options_.plants.wrap;
  options.faults_or_null = &plan_;
  options.patience = options_.patience;
  options.observer_or_null = &injector_;
  options.on_tick = [this](uint64_t tick) { on_tick(tick); };
  if (max_stacks_ > 0) options.threads = std::make_shared<SharedThreads>(1, max_stacks_);
  auto trial = Trial::make(subject_, options);
  if (!trial.is_ok()) return "no session: " + trial.status().to_string();
  trial_ = std::move(*trial);
  return {};
}

std::string FaultPoint::check_end(const Status& status, const NamedTensors* outputs_or_null) {
  if (!status.is_ok()) return rules_.check_error(status);
  if (outputs_or_null == nullptr) return {};
  const std::string text = difference(trial_->oracle(0).outputs, *outputs_or_null);
  return text.empty() ? text : "a run that succeeded: " + text;
}

// Moves the device until the run has ended; the scheduler does where the host drives loops.
std::string FaultPoint::wait_for(RunHandle& handle) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_move = Clock::now();
  uint64_t last_tick = trial_->device().now();
  uint32_t num_idle = 0;
  while (!handle.is_done()) {
    if (options_.loops != Loops::kHost && trial_->device().poll()) continue;
    if (++num_idle % 64 == 0) std::this_thread::yield();
    if (num_idle % 4096 != 0) continue;
    const uint64_t tick = trial_->device().now();
    if (std::exchange(last_tick, tick) != tick) last_move = Clock::now();
    if (Clock::now() - last_move < options_.patience) continue;
    std::string text =
        "a run hangs:\n" + trial_->session().describe_runs() + trial_->device().wait_graph();
    trial_->note_hang();
    return text;
  }
  return {};
}

std::vector<RunHandle> FaultPoint::submit(const Flights& flights, Stream* stream_or_null) {
  std::vector<RunHandle> handles;
  const std::shared_ptr<const void> held = trial_->hold();
  Session& session = trial_->session();
  for (size_t i = 0; i < flights->size(); ++i) {
    RunCallback callback = [this, flights, i](Result<NamedTensors> outputs) {
      Flight& flight = (*flights)[i];
      flight.status = outputs.status();
      if (outputs.is_ok()) flight.outputs = std::move(*outputs);
      ++flight.num_callbacks;
      // This would hang if a lock of the session were held.
      (void)trial_->session().describe_runs();
      (void)trial_->session().loop_reports();
      if (plan_.should_fail(FaultKind::kCallback)) throw std::runtime_error("told to throw");
    };
    if (options_.plants.wrap_callback)
      callback = options_.plants.wrap_callback(std::move(callback));
    const bool is_behind = stream_or_null != nullptr && i == 1;
    handles.push_back(is_behind ? session.run_on(*stream_or_null, trial_->inputs(0), callback)
                                : session.run_async(trial_->inputs(0), callback));
    watch(handles[0]);
  }
  return handles;
}

// Once both have ended.
std::string FaultPoint::check_flights(std::span<RunHandle> handles, const Flights& flights) {
  EDDY_CHECK(handles.size() == flights->size()) << handles.size() << " runs are in flight";
  std::vector<Status> statuses;
  size_t num_failed = 0;
  for (size_t i = 0; i < flights->size(); ++i) {
    const Flight& flight = (*flights)[i];
    if (flight.num_callbacks != 1) {
      return std::to_string(flight.num_callbacks) + " callbacks of one run";
    }
    if (handles[i].wait().to_string() != flight.status.to_string()) {
      return "handle and callback differ: " + handles[i].wait().to_string() + ", " +
             flight.status.to_string();
    }
    if (std::string text = check_end(flight.status, &flight.outputs); !text.empty()) return text;
    num_failed += flight.status.is_ok() ? 0 : 1;
    statuses.push_back(flight.status);
  }
  if (max_stacks_ > 0) num_fired_ += num_failed;
  if (!rules_.may_end_others() && num_failed > plan_.num_fired()) return "one fault ended two runs";
  return rules_.check_runs(statuses);
}

std::string FaultPoint::run_in_flight() {
  // The second run in the order of a stream, every other time.
  std::unique_ptr<Stream> stream;
  if (num_points_ % 2 == 1 || rules_.is_armed(FaultKind::kCreateGate)) {
    auto made = trial_->session().create_stream();
    if (made.is_ok()) {
      stream = std::move(*made);
    } else if (std::string text = rules_.check_error(made.status()); !text.empty()) {
      return text;
    }
  }
  const auto flights = std::make_shared<std::array<Flight, 2>>();
  std::vector<RunHandle> handles = submit(flights, stream.get());
  for (RunHandle& handle : handles) {
    if (std::string text = wait_for(handle); !text.empty()) {
      watch(std::nullopt);
      (void)stream.release();
      return text;
    }
  }
  watch(std::nullopt);
  while (stream != nullptr && !stream->is_idle()) trial_->device().poll();
  return check_flights(handles, flights);
}

std::string FaultPoint::run_call() {
  const auto& wanted = trial_->session().outputs();
  auto call = trial_->session().prepare();
  if (!call.is_ok()) return check_end(call.status(), nullptr);
  std::vector<Tensor> inputs;  // copies, so that a write would show
  for (const auto& [name, value] : trial_->inputs(0)) {
    if (!value.is_tensor()) return run_in_flight();
    inputs.push_back(Tensor::copy_of(value.view()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (Status status = (*call)->bind_input(i, inputs[i].view()); !status.is_ok()) {
      return status.to_string();
    }
  }
  std::vector<std::pair<size_t, Tensor>> outputs;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ValueType& type = wanted[i].type;
    if (!type.is_tensor() || !type.tensor.is_static()) continue;
    outputs.emplace_back(i, Tensor::zeros(type.tensor.element, type.tensor.dims));
    if (Status status = (*call)->bind_output(i, outputs.back().second.view()); !status.is_ok()) {
      return status.to_string();
    }
  }
  is_call_ = true;
  const Status status = (*call)->run();
  is_call_ = false;
  in_call_or_null_ = nullptr;
  NamedTensors made;
  for (size_t i = 0; status.is_ok() && i < wanted.size(); ++i) {
    if (!wanted[i].type.is_tensor()) return {};
    made.emplace_back(wanted[i].name, Tensor::borrow((*call)->output(i)));
  }
  if (std::string text = check_end(status, &made); !text.empty()) return text;
  if (std::string text = rules_.check_runs({&status, 1}); !text.empty()) return text;
  for (const auto& [i, tensor] : outputs) {
    std::memset(tensor.view().data, kPattern, tensor.view().size_bytes());
  }
  while (trial_->device().poll()) {
  }
  call->reset();
  for (const auto& [i, tensor] : outputs) {
    const auto* bytes = static_cast<const char*>(tensor.view().data);
    if (std::any_of(bytes, bytes + tensor.view().size_bytes(),
                    [](char byte) { return byte != kPattern; })) {
      return "output '" + wanted[i].name + "' was written after its run had ended";
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (digest(inputs[i]) != digest(trial_->inputs(0)[i].second)) return "an input was written";
  }
  return {};
}

std::string FaultPoint::check_next_run() {
  EDDY_CHECK(!hangs()) << "a run hangs, so no other can end";
  if (max_stacks_ > 0) {  // it would lack them, too
    max_stacks_ = 0;
    if (std::string text = close(); !text.empty()) return text;
    return start();
  }
  if (trial_->device().health().is_ok()) return trial_->run(0);
  const Status status = trial_->session().run(trial_->inputs(0)).status();
  if (status.code() != StatusCode::kDeviceLost) {
    return "a run on a lost device ends with: " + status.to_string();
  }
  std::string text = trial_->close();
  trial_.reset();
  return text;
}

void FaultPoint::disarm() {
  plan_.arm({});
  rules_.arm({});
  max_stacks_ = 0;
}

std::string FaultPoint::run(const std::vector<Fault>& faults) {
  disarm();
  num_fired_ = 0;
  ++num_points_;
  if (trial_ == nullptr) {
    if (std::string text = start(); !text.empty()) return text;
  }
  rules_.arm(faults);
  for (const Fault& fault : faults) {
    if (fault.kind == FaultKind::kStack) max_stacks_ = fault.kth;
  }
  if (needs_cold_start()) {
    if (std::string text = trial_->close(); !text.empty()) return text;
    if (std::string text = start_cold(); !text.empty()) return text;
  }
  EDDY_CHECK(trial_ != nullptr) << "no session is there to fail";
  first_tick_ = trial_->device().now();
  plan_.arm(faults);
  const bool is_call =
      options_.loops != Loops::kHost && num_points_ % 4 == 0 && !needs_cold_start();
  std::string text = is_call ? run_call() : run_in_flight();
  num_fired_ += plan_.num_fired();
  plan_.arm({});
  if (hangs()) return text;
  if (text.empty()) text = take_note();
  if (text.empty()) text = trial_->findings();
  if (text.empty()) text = check_next_run();
  return text;
}

std::string FaultPoint::close() {
  disarm();
  std::string text = trial_ == nullptr ? "" : trial_->close();
  trial_.reset();
  return text;
}

}  // namespace eddy::check
