#include "runtime/execute/runs/run_pool.h"

#include "graph/base/check.h"

namespace eddy {

BoundRun::BoundRun(const Executable& executable, std::shared_ptr<const ResolvedProgram> code,
                   TraceRecorder* trace_or_null)
    : RunState(executable, executable.memory(0)), code_(std::move(code)) {
  const bool is_seen = trace_or_null != nullptr || executable.observer_or_null() != nullptr;
  if (!is_seen && start_recording()) make_device_controls();
  strands_ = bind_strands(*code_, *this, device_controls_, trace_or_null);
  runner_ = executable.options().make_runner(code_->code, strands_.bindings, captures());
  bind_streams(*code_, *this, device_controls_, *runner_);
}

void BoundRun::make_device_controls() {
  const GraphCaptures captures = this->captures();
  device_controls_.resize(graph().num_nodes());
  for (uint32_t n = 0; n < graph().num_nodes(); ++n) {
    const ControlVerdict& verdict = executable().control_verdict(NodeId(n));
    if (!verdict.is_driven_by_device || !verdict.is_outermost) continue;
    EDDY_DCHECK(verdict.device < captures.size()) << "a loop of device " << verdict.device;
    const GraphCapture* const capture = captures[verdict.device];
    if (capture == nullptr || !capture->can_decide()) continue;
    device_controls_[n] = std::make_unique<DeviceControl>(*this, NodeId(n));
    add_device_loop(NodeId(n), *device_controls_[n]);
  }
}

RunPool::RunPool(const Executable& executable)
    : executable_(executable), code_(resolve(Extra::kNone)) {}

std::unique_ptr<BoundRun> RunPool::acquire() {
  {
    std::lock_guard lock(lock_);
    if (!free_.empty()) {
      auto state = std::move(free_.back());
      free_.pop_back();
      return state;
    }
  }
  return std::make_unique<BoundRun>(executable_, code_, nullptr);
}

std::unique_ptr<BoundRun> RunPool::acquire_streaming() {
  std::shared_ptr<const ResolvedProgram> code;
  {
    std::lock_guard lock(lock_);
    if (streaming_code_ == nullptr) streaming_code_ = resolve(Extra::kRows);
    if (!free_streaming_.empty()) {
      auto state = std::move(free_streaming_.back());
      free_streaming_.pop_back();
      return state;
    }
    code = streaming_code_;
  }
  return std::make_unique<BoundRun>(executable_, std::move(code), nullptr);
}

bool RunPool::has_free_state() {
  std::lock_guard lock(lock_);
  return !free_.empty();
}

std::unique_ptr<BoundRun> RunPool::make_traced(TraceRecorder& recorder) {
  return std::make_unique<BoundRun>(executable_, resolve(Extra::kSpans), &recorder);
}

std::shared_ptr<const ResolvedProgram> RunPool::resolve(Extra extra) const {
  const Executable& of = executable_;
  const bool is_observed = of.observer_or_null() != nullptr;
  ResolveOptions options;
  options.is_cheap = [&](NodeId node) { return of.is_cheap(node); };
  options.has_release = [&](NodeId node) {
    return !of.releases(node).empty() && !of.releases_by_itself(node);
  };
  options.may_answer_later = [&](NodeId node) {
    if (of.kernel(node).start != nullptr) return true;
    const bool shares = of.options().shares_tiles && !is_observed &&
                        !(of.options().is_host_driven && of.is_cheap(node));
    return shares && of.kernel(node).run_tile != nullptr;
  };
  options.has_spans = extra == Extra::kSpans;
  options.streams_rows = extra == Extra::kRows;
  if (of.has_device_control() && extra != Extra::kSpans && !is_observed) {
    options.may_be_driven = [&](NodeId node) {
      const ControlVerdict& verdict = of.control_verdict(node);
      return verdict.is_driven_by_device && verdict.is_outermost;
    };
  }
  return std::make_shared<const ResolvedProgram>(resolve_program(of.plan().program, options));
}

void RunPool::release(std::unique_ptr<BoundRun> state) {
  EDDY_DCHECK(state != nullptr) << "no state is given back";
  std::lock_guard lock(lock_);
  auto& free = state->code() == streaming_code_.get() ? free_streaming_ : free_;
  const size_t most = executable_.options().max_free_states;
  if (most != 0 && free.size() >= most) return;
  free.push_back(std::move(state));
}

void RunPool::trim() {
  std::vector<std::unique_ptr<BoundRun>> idle, idle_streaming;  // go after the lock
  std::lock_guard lock(lock_);
  idle.swap(free_);
  idle_streaming.swap(free_streaming_);
}

}  // namespace eddy
