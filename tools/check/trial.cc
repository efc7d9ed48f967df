#include "tools/check/trial.h"

#include <chrono>
#include <semaphore>
#include <thread>

#include "graph/base/check.h"
#include "runtime/api/shared_threads.h"
#include "runtime/coroutine/scheduler.h"
#include "tools/check/leak_on_purpose.h"
#include "tools/check/virtual_accelerator.h"

namespace eddy::check {
Status Trial::Chain::before(RunState& state, const ::eddy::Step& step) {
  StepObserver* first = trial_.options_.observer_or_null;
  if (first != nullptr) EDDY_RETURN_IF_ERROR(first->before(state, step));
  if (!trial_.has_accelerator()) (void)trial_.digests_.before(state, step);
  return trial_.options_.checks_races ? trial_.races_.before(state, step) : Status::ok();
}

void Trial::Chain::after(RunState& state, const ::eddy::Step& step, int32_t decision) {
  if (trial_.options_.checks_races) trial_.races_.after(state, step, decision);
  if (!trial_.has_accelerator()) trial_.digests_.after(state, step, decision);
  StepObserver* last = trial_.options_.observer_or_null;
  if (last != nullptr) last->after(state, step, decision);
}

Result<std::unique_ptr<Trial>> Trial::make(Subject& subject, const TrialOptions& options) {
  std::unique_ptr<Trial> trial(new Trial(subject, options));
  EDDY_RETURN_IF_ERROR(trial->start());
  return trial;
}

Trial::Trial(Subject& subject, const TrialOptions& options)
    : subject_(subject),
      options_(options),
      threads_(is_host_driven() && !options.threads ? std::make_shared<SharedThreads>()
                                                    : options.threads) {}

Trial::~Trial() {
  if (hangs_) leak_on_purpose(std::move(session_));
  session_.reset();
}

SessionOptions Trial::session_options() {
  SessionOptions options;
  options.assignment = options_.assignment;
  options.loops = options_.loops;
  options.max_streams = options_.max_streams;
  options.threads = threads_;
  options.simplify = false;
  options.use_arenas = subject_.recipe().seed % 2 == 0;
  if (subject_.recipe().seed % 3 == 0) options.min_released_bytes = 0;
  options.observer_or_null = &chain_;
  options.make_device = [this]() -> Result<std::shared_ptr<Device>> {
    if (!options_.wrap) return std::shared_ptr<Device>(device_);
    return options_.wrap(device_);
  };
  for (uint64_t d = 0; has_accelerator() && d < options_.num_accelerators; ++d) {
    options.make_devices.push_back([this, d]() -> Result<ExecutionDevice> {
      return make_virtual_accelerator(
          device_, subject_.library(),
          all_but(options_.accelerator_cpu_share, subject_.recipe().seed + d));
    });
  }
  return options;
}

Status Trial::start() {
  EDDY_CHECK(session_ == nullptr) << "a trial starts once";
  VirtualDeviceOptions device;
  device.engine.order = options_.order;
  device.engine.chooser_or_null = options_.chooser_or_null;
  device.engine.faults_or_null = options_.faults_or_null;
  device.engine.on_tick = options_.on_tick;
  if (options_.checks_races) device.engine.watcher_or_null = &races_;
  device_ = std::make_shared<VirtualDevice>(device);
  races_.reset(device_.get());
  // While the graph is there; and before faults are armed: the oracle calls host functions, too.
  for (uint64_t variant : {0, 1}) (void)subject_.expected(variant);
  EDDY_ASSIGN_OR_RETURN(Graph graph, subject_.copy_graph());
  EDDY_ASSIGN_OR_RETURN(session_,
                        Session::create(subject_.library(), std::move(graph), session_options()));
  return Status::ok();
}

std::string Trial::findings() {
  const std::vector<std::string> violations = device_->violations();
  EDDY_CHECK(violations.size() >= num_violations_seen_) << "a violation was taken back";
  if (violations.size() > num_violations_seen_) return violations[num_violations_seen_++];
  const std::vector<std::string> races = races_.races();
  EDDY_CHECK(races.size() >= num_races_seen_) << "a race was taken back";
  if (races.size() > num_races_seen_) return "race: " + races[num_races_seen_++];
  return {};
}

Result<NamedTensors> Trial::run_watched(uint64_t variant) {
  auto outputs = std::make_shared<Result<NamedTensors>>(internal_error("no callback"));
  RunHandle handle = session_->run_async(
      inputs(variant), [outputs](Result<NamedTensors> made) { *outputs = std::move(made); });
  auto last_move = std::chrono::steady_clock::now();
  uint64_t last_tick = device_->now();
  while (!handle.is_done()) {
    if (options_.loops != Loops::kHost && device_->poll()) continue;
    std::this_thread::yield();
    const auto now = std::chrono::steady_clock::now();
    if (device_->now() != last_tick) {
      last_tick = device_->now();
      last_move = now;
    }
    if (now - last_move < options_.patience) continue;
    std::string text = "the run hangs: " + session_->describe_runs() + device_->wait_graph();
    for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) text.replace(at, 1, "; ");
    hangs_ = true;
    return internal_error(std::move(text));
  }
  return std::move(*outputs);
}

std::string Trial::run(uint64_t variant) {
  EDDY_CHECK(session_ != nullptr && !hangs_) << "a run of a trial that is over";
  const OracleResult& should = oracle(variant);
  digests_.clear();
  const auto outputs =
      options_.patience.count() > 0 ? run_watched(variant) : session_->run(inputs(variant));
  if (hangs_) return outputs.status().message();
  std::string text = findings();
  if (text.empty() && !outputs.is_ok()) text = outputs.status().to_string();
  if (text.empty()) text = difference(should.outputs, *outputs);
  if (text.empty() && !has_accelerator()) text = digests_.difference(session_->graph(), should);
  return text.empty() ? text : "inputs " + std::to_string(variant) + ": " + text;
}

std::string Trial::run_two() {
  std::shared_ptr<Result<NamedTensors>> outputs[2];
  std::vector<RunHandle> handles;
  std::shared_ptr<const void> held = hold();
  for (uint64_t variant : {0, 1}) {
    auto& slot = outputs[variant] =
        std::make_shared<Result<NamedTensors>>(internal_error("no callback"));
    handles.push_back(session_->run_async(
        inputs(variant), [slot](Result<NamedTensors> made) { *slot = std::move(made); }));
  }
  held.reset();
  for (RunHandle& handle : handles) (void)handle.wait();  // the outputs carry the status
  std::string text = findings();
  for (uint64_t variant : {0, 1}) {
    if (!text.empty()) break;
    const Result<NamedTensors>& made = *outputs[variant];
    text = made.is_ok() ? difference(oracle(variant).outputs, *made) : made.status().to_string();
    if (!text.empty()) text = "of two at once, inputs " + std::to_string(variant) + ": " + text;
  }
  return text;
}

std::shared_ptr<const void> Trial::hold() {
  if (!is_host_driven()) return nullptr;
  struct Hold {  // the task's, too
    std::binary_semaphore has_begun{0};
    std::binary_semaphore may_end{0};
  };
  auto hold = std::make_shared<Hold>();
  const Status status = threads_->scheduler().spawn([hold] {
    hold->has_begun.release();
    hold->may_end.acquire();  // blocks the scheduler's thread, which is what it is for
  });
  if (!status.is_ok()) return nullptr;
  hold->has_begun.acquire();
  return {hold.get(), [hold](const void*) { hold->may_end.release(); }};
}

std::string Trial::close() {
  if (session_ == nullptr || hangs_) return {};
  session_->close();
  session_.reset();
  const size_t used_bytes = device_->allocator().statistics().used_bytes;
  if (used_bytes > 0) return std::to_string(used_bytes) + " bytes are still in use";
  if (device_->num_events() > 0) {
    return std::to_string(device_->num_events()) + " events or gates are left";
  }
  const std::string waits = device_->wait_graph();
  return waits.empty() ? findings() : "somebody still waits:\n" + waits;
}

}  // namespace eddy::check
