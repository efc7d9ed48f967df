#include "tools/check/fault_point.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "runtime/api/async_run.h"
#include "runtime/api/shared_threads.h"
#include "runtime/execute/run_state.h"
#include "tools/check/mixing_ops.h"

namespace eddy::check {
namespace {

constexpr uint64_t kMaxTicks = 2'000'000;  // of one point
constexpr auto kMaxTime = std::chrono::seconds(30);
constexpr int kPattern = 0x77;

bool is_inside_node(FaultKind kind) {
  return kind == FaultKind::kKernel || kind == FaultKind::kPredicate ||
         kind == FaultKind::kHostFunction;
}

StatusCode code_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kAllocation:
    case FaultKind::kCreateStream:
    case FaultKind::kCreateEvent:
    case FaultKind::kCreateGate:
    case FaultKind::kStack:
      return StatusCode::kResourceExhausted;
    case FaultKind::kEnqueue:
    case FaultKind::kRecord:
    case FaultKind::kWait:
    case FaultKind::kKillLane:
    case FaultKind::kLoseDevice:
      return StatusCode::kDeviceLost;
    case FaultKind::kKernel:
    case FaultKind::kPredicate:
    case FaultKind::kHostFunction:
      return StatusCode::kRunFailed;
    case FaultKind::kCallback:
      return StatusCode::kOk;
    case FaultKind::kCancel:
      return StatusCode::kCancelled;
    case FaultKind::kDeadline:
      return StatusCode::kDeadlineExceeded;
  }
  return StatusCode::kInternal;
}

}  // namespace

FaultPoint::FaultPoint(const Recipe& recipe, Loops loops)
    : loops_(loops), subject_(library_, recipe) {
  const Status status = add_mixing_ops(
      library_, [this](std::span<const TensorView> inputs) { return choose(inputs); });
  EDDY_CHECK(status.is_ok()) << status.to_string();
}

FaultPoint::~FaultPoint() = default;

bool FaultPoint::is_armed(FaultKind kind) const {
  return std::any_of(armed_.begin(), armed_.end(),
                     [&](const Fault& fault) { return fault.kind == kind; });
}

bool FaultPoint::may_lose_device() const {
  return std::any_of(armed_.begin(), armed_.end(), [](const Fault& fault) {
    return code_of(fault.kind) == StatusCode::kDeviceLost;
  });
}

void FaultPoint::note(std::string violation) {
  std::lock_guard lock(mutex_);
  if (note_.empty()) note_ = std::move(violation);
}

std::string FaultPoint::take_note() {
  std::lock_guard lock(mutex_);
  return std::exchange(note_, std::string());
}

Status FaultPoint::Injector::before(RunState& state, const ::eddy::Step& step) {
  if (point_.is_call_) point_.in_call_or_null_ = &state;
  if (state.control.is_stopped()) {
    point_.note(state.iteration_path(step.node) + " starts after its run was decided");
  }
  const bool is_decision = step.kind == StepKind::kTest || step.kind == StepKind::kSelect;
  const FaultKind kind = is_decision ? FaultKind::kPredicate : FaultKind::kKernel;
  if (!is_decision && step.kind != StepKind::kExec) return Status::ok();
  if (!point_.plan_.should_fail(kind)) return Status::ok();
  std::lock_guard lock(point_.mutex_);
  point_.injected_paths_.push_back(state.iteration_path(step.node));
  return run_failed("told to fail");
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
  if (!plan_.should_fail(FaultKind::kHostFunction)) return choose_by_mixing(inputs);
  if (num_points_ % 2 == 0) throw std::runtime_error("told to throw");
  return run_failed("told to fail");
}

void FaultPoint::on_tick(uint64_t tick) {
  if (plan_.should_fail(FaultKind::kDeadline)) pass_deadline();
  const bool is_endless = tick - first_tick_ == kMaxTicks;
  if (is_endless) note("the runs still go on after " + std::to_string(kMaxTicks) + " steps");
  if (!is_endless && !plan_.should_fail(FaultKind::kCancel)) return;
  auto first = watched();
  if (first && loops_ != Loops::kHost && !is_endless) return first->cancel();
  trial_->session().cancel_all();
}

// Of the first run in flight, as its timer would; or of the prepared one.
void FaultPoint::pass_deadline() {
  if (const auto first = watched()) return AsyncRun::stop(*first, StopReason::kDeadline);
  if (in_call_or_null_ != nullptr) in_call_or_null_->control.request_stop(StopReason::kDeadline);
}

// What is made once and reused fails only while it is made.
bool FaultPoint::needs_cold_start() const {
  return is_armed(FaultKind::kCreateStream) || is_armed(FaultKind::kCreateEvent) ||
         is_armed(FaultKind::kCreateGate) || is_armed(FaultKind::kStack);
}

std::string FaultPoint::start() {
  if (std::string text = start_cold(); !text.empty()) return text;
  return trial_->run(0);
}

std::string FaultPoint::start_cold() {
  TrialOptions options;
  options.order.seed = subject_.recipe().seed + 1;
  options.loops = loops_;
  options.faults_or_null = &plan_;
  options.observer_or_null = &injector_;
  options.on_tick = [this](uint64_t tick) { on_tick(tick); };
  for (const Fault& fault : armed_) {
    if (fault.kind != FaultKind::kStack) continue;
    options.threads = std::make_shared<SharedThreads>(1, fault.kth);
  }
  auto trial = Trial::make(subject_, options);
  if (!trial.is_ok()) return "no session: " + trial.status().to_string();
  trial_ = std::move(*trial);
  return {};
}

std::string FaultPoint::check_status(const Status& status) const {
  bool is_expected = false;
  bool needs_path = true;
  for (const Fault& fault : armed_) {
    is_expected |= code_of(fault.kind) == status.code();
    needs_path &= is_inside_node(fault.kind);
  }
  if (!is_expected) return "an unexpected status: " + status.to_string();
  if (needs_path && status.path().empty()) return "no node is named: " + status.to_string();
  const bool is_known = std::find(injected_paths_.begin(), injected_paths_.end(), status.path()) !=
                        injected_paths_.end();
  if (needs_path && !is_known && !is_armed(FaultKind::kHostFunction)) {
    return "the status names '" + status.path() + "', which was not failed";
  }
  if (status.message().empty()) return "a status without a message";
  return {};
}

std::string FaultPoint::check_end(const Status& status, const NamedTensors* outputs_or_null) {
  if (!status.is_ok()) return check_status(status);
  if (outputs_or_null == nullptr) return {};
  const std::string text = difference(trial_->oracle(0).outputs, *outputs_or_null);
  return text.empty() ? text : "a run that succeeded: " + text;
}

// Moves the device until the run has ended; the scheduler does where the host drives loops.
std::string FaultPoint::wait_for(RunHandle& handle) {
  const auto latest = std::chrono::steady_clock::now() + kMaxTime;
  uint32_t num_idle = 0;
  while (!handle.is_done()) {
    if (loops_ != Loops::kHost && trial_->device().poll()) continue;
    if (++num_idle % 64 == 0) std::this_thread::yield();
    if (num_idle % 4096 != 0 || std::chrono::steady_clock::now() < latest) continue;
    const std::string text =
        "a run hangs:\n" + trial_->session().describe_runs() + trial_->device().wait_graph();
    (void)trial_.release();  // it could never be destroyed
    return text;
  }
  return {};
}

std::string FaultPoint::run_in_flight() {
  Flight flights[2];
  std::vector<RunHandle> handles;
  // The second run in the order of a stream, every other time.
  std::unique_ptr<Stream> stream;
  if (num_points_ % 2 == 1 || is_armed(FaultKind::kCreateGate)) {
    auto made = trial_->session().create_stream();
    if (!made.is_ok() && !check_status(made.status()).empty()) return check_status(made.status());
    if (made.is_ok()) stream = std::move(*made);
  }
  std::shared_ptr<const void> held = trial_->hold();
  for (Flight& flight : flights) {
    const auto callback = [this, &flight](Result<NamedTensors> outputs) {
      flight.status = outputs.status();
      if (outputs.is_ok()) flight.outputs = std::move(*outputs);
      ++flight.num_callbacks;
      // With a lock of the session held this would hang.
      (void)trial_->session().describe_runs();
      (void)trial_->session().loop_reports();
      if (plan_.should_fail(FaultKind::kCallback)) throw std::runtime_error("told to throw");
    };
    Session& session = trial_->session();
    const bool is_behind = stream != nullptr && &flight == &flights[1];
    handles.push_back(is_behind ? session.run_on(*stream, trial_->inputs(0), callback)
                                : session.run_async(trial_->inputs(0), callback));
    watch(handles[0]);
  }
  held.reset();
  for (RunHandle& handle : handles) {
    if (std::string text = wait_for(handle); !text.empty()) {
      watch(std::nullopt);
      (void)stream.release();
      return text;
    }
  }
  watch(std::nullopt);
  while (stream != nullptr && !stream->is_idle()) trial_->device().poll();
  size_t num_failed = 0;
  for (size_t i = 0; i < 2; ++i) {
    if (flights[i].num_callbacks != 1) {
      return std::to_string(flights[i].num_callbacks) + " callbacks of one run";
    }
    if (handles[i].wait().to_string() != flights[i].status.to_string()) {
      return "handle and callback differ: " + handles[i].wait().to_string() + ", " +
             flights[i].status.to_string();
    }
    if (std::string text = check_end(flights[i].status, &flights[i].outputs); !text.empty()) {
      return text;
    }
    num_failed += flights[i].status.is_ok() ? 0 : 1;
  }
  if (is_armed(FaultKind::kStack)) num_fired_ += num_failed;
  const bool spares_others =
      !may_lose_device() && !is_armed(FaultKind::kCancel) && !is_armed(FaultKind::kStack);
  if (spares_others && num_failed > plan_.num_fired()) return "one fault ended two runs";
  const bool must_fail = is_armed(FaultKind::kKernel) || is_armed(FaultKind::kPredicate);
  if (armed_.size() == 1 && must_fail && plan_.num_fired() > 0 && num_failed == 0) {
    return "a failure was lost";
  }
  return {};
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
  if (is_armed(FaultKind::kStack)) {  // it would lack stacks, too
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

std::string FaultPoint::run(const std::vector<Fault>& faults) {
  plan_.arm({});
  armed_.clear();
  num_fired_ = 0;
  injected_paths_.clear();
  ++num_points_;
  if (trial_ == nullptr) {
    if (std::string text = start(); !text.empty()) return text;
  }
  armed_ = faults;
  if (needs_cold_start()) {
    if (std::string text = trial_->close(); !text.empty()) return text;
    if (std::string text = start_cold(); !text.empty()) return text;
  }
  first_tick_ = trial_->device().now();
  plan_.arm(faults);
  const bool is_call = loops_ != Loops::kHost && num_points_ % 4 == 0 && !needs_cold_start();
  std::string text = is_call ? run_call() : run_in_flight();
  num_fired_ += plan_.num_fired();
  plan_.arm({});
  if (trial_ == nullptr) return text;
  if (text.empty()) text = take_note();
  if (text.empty()) text = trial_->findings();
  if (text.empty()) text = check_next_run();
  return text;
}

std::string FaultPoint::close() {
  plan_.arm({});
  armed_.clear();
  std::string text = trial_ == nullptr ? "" : trial_->close();
  trial_.reset();
  return text;
}

}  // namespace eddy::check
