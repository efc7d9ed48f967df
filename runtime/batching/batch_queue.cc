#include "runtime/batching/batch_queue.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "graph/base/check.h"
#include "runtime/api/session_scope.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/device/no_thread.h"

namespace eddy {
namespace {

using Clock = std::chrono::steady_clock;

Status stop_status(StopReason reason, const char* where) {
  return reason == StopReason::kDeadline
             ? deadline_exceeded(std::string("the run passed its deadline while ") + where)
             : cancelled(std::string("the run was cancelled while ") + where);
}
constexpr const char* kWaits = "it waited for its batch";
constexpr const char* kRuns = "its batch ran";

}  // namespace

BatchQueue::BatchQueue(Parts parts)
    : threads_(std::move(parts.threads)),
      fork_guard_(threads_->fork_guard()),
      values_(std::move(parts.values)),
      batching_(std::move(parts.batching)),
      max_waiting_(parts.max_waiting),
      log_(std::move(parts.log)),
      callbacks_(std::make_unique<SessionCallbacks>(threads_->callback_threads())),
      session_(std::move(parts.session)) {}

RequestRef BatchQueue::make_request(const RunOptions& options) {
  auto request = std::make_shared<BatchRequest>();
  request->queue = shared_from_this();
  request->options = options;
  if (options.timeout) request->deadline = deadline_in(*options.timeout);
  request->signal.clear();
  return request;
}

// ---------------------------------------------------------------- gathering

Status BatchQueue::arm(const RequestRef& request) try {
  if (request->callback) callbacks_->prepare();
  const bool goes_alone =
      !request->options.streams.empty() || request->options.trace_or_null != nullptr;
  if (!goes_alone) request->sorted = values_.sort(*request->inputs_or_null);
  if (request->sorted) request->num_samples = request->sorted->num_samples;
  if (request->num_samples > batching_.max_samples) request->sorted.reset();
  if (!request->deadline) return Status::ok();
  request->timer.arm(threads_->scheduler(), *request->deadline,
                     [this, weak = std::weak_ptr<BatchRequest>(request)] {
                       if (const RequestRef late = weak.lock()) stop(late, StopReason::kDeadline);
                     });
  return Status::ok();
} catch (const std::system_error& error) {
  return no_thread(error);
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for what a run needs");
}

Status BatchQueue::enter(const RequestRef& request, Batches& turns) {
  EDDY_RETURN_IF_ERROR(arm(request));
  std::lock_guard lock(mutex_);
  if (is_closed_) return cancelled("the session is closed");
  const size_t num_waiting = num_live_ - num_running_;
  if (max_waiting_ != 0 && num_waiting >= max_waiting_) {
    return resource_exhausted(std::to_string(num_waiting) +
                              " runs wait already, as many as max_runs_waiting allows; wait for "
                              "some of them first, or raise it");
  }
  if (request->deadline && Clock::now() >= *request->deadline) {
    return stop_status(StopReason::kDeadline, kWaits);
  }
  ++num_live_;
  add(request);
  take_turns(turns);
  return Status::ok();
}

void BatchQueue::add(const RequestRef& request) {
  EDDY_DCHECK(request->phase == BatchRequest::Phase::kNew && request->batch == nullptr)
      << "a request is submitted twice";
  const BatchRef batch = batch_for(request);
  request->phase = BatchRequest::Phase::kWaiting;
  request->batch = batch;
  batch->requests.push_back(request);
  ++batch->num_left;
  EDDY_DCHECK(batch->num_left == batch->requests.size())
      << batch->num_left << " of " << batch->requests.size() << " requests wait";
  batch->num_samples += request->num_samples;
  const bool is_full = batch->key.empty() || batch->num_samples >= batching_.max_samples;
  if (is_full && !batch->key.empty()) open_.erase(std::exchange(batch->key, {}));
  if (is_full || is_draining_ || batching_.wait_limit.count() <= 0) make_ready(batch);
}

// One that takes it, or a new one.
BatchRef BatchQueue::batch_for(const RequestRef& request) {
  if (!request->sorted) return make_batch(request, {});
  std::string key =
      std::to_string(static_cast<int>(request->options.priority)) + request->sorted->key;
  if (const auto found = open_.find(key); found != open_.end()) {
    const BatchRef batch = found->second;
    EDDY_DCHECK(!batch->requests.empty() && batch->phase <= Batch::Phase::kReady)
        << "an open batch that takes no more requests";
    const bool has_room = batch->num_samples + request->num_samples <= batching_.max_samples;
    if (has_room && values_.are_alike(*batch->requests[0]->sorted, *request->sorted)) return batch;
    open_.erase(found);
    batch->key.clear();
    make_ready(batch);
  }
  return make_batch(request, std::move(key));
}

BatchRef BatchQueue::make_batch(const RequestRef& request, std::string key) {
  auto batch = std::make_shared<Batch>();
  batch->priority = request->options.priority;
  if (key.empty()) return batch;
  EDDY_DCHECK(!open_.contains(key)) << "two open batches of one key";
  open_.emplace(key, batch);
  batch->key = std::move(key);
  if (batching_.wait_limit.count() <= 0) return batch;
  if (const Deadline due = deadline_in(batching_.wait_limit)) {
    batch->timer.arm(threads_->scheduler(), *due,
                     [this, weak = std::weak_ptr<Batch>(batch)] { come_due(weak); });
  }
  return batch;
}

void BatchQueue::make_ready(const BatchRef& batch, bool is_first) {
  if (batch->phase != Batch::Phase::kGathering) return;
  batch->phase = Batch::Phase::kReady;
  auto& list = ready_[kNumPriorities - 1 - static_cast<size_t>(batch->priority)];
  list.insert(is_first ? list.begin() : list.end(), batch);
}

// It takes no more requests, and waits no more.
void BatchQueue::take_away(const BatchRef& batch) {
  if (!batch->key.empty()) open_.erase(std::exchange(batch->key, {}));
  if (batch->phase != Batch::Phase::kReady) return;
  ready_[kNumPriorities - 1 - static_cast<size_t>(batch->priority)].remove(batch);
}

// Each is held until run_batch() has gone through it.
void BatchQueue::take_turns(Batches& turns) {
  for (auto& list : ready_) {
    while (!list.empty() && in_flight_.size() < batching_.max_batches_in_flight) {
      const BatchRef batch = list.front();
      EDDY_DCHECK(batch->phase == Batch::Phase::kReady && !batch->requests.empty())
          << "a batch of " << batch->requests.size() << " requests has its turn";
      take_away(batch);
      batch->phase = Batch::Phase::kJoining;
      for (const RequestRef& request : batch->requests) {
        request->phase = BatchRequest::Phase::kRunning;
      }
      num_running_ += batch->requests.size();
      EDDY_DCHECK(num_running_ <= num_live_) << num_running_ << " of " << num_live_ << " run";
      in_flight_.push_back(batch);
      ++num_holds_;
      turns.push_back(batch);
    }
  }
}

// On the scheduler's thread.
void BatchQueue::come_due(const std::weak_ptr<Batch>& due) {
  const BatchRef batch = due.lock();
  if (batch == nullptr) return;
  Batches turns;
  {
    std::lock_guard lock(mutex_);
    if (batch->phase != Batch::Phase::kGathering || batch->requests.empty()) return;
    make_ready(batch);
    take_turns(turns);
  }
  hand_out(turns, false);
}

// ---------------------------------------------------------------- requests

Result<NamedTensors> BatchQueue::run(const RequestRef& request) {
  request->is_waited_for = true;
  Batches turns;
  Status status = check_wait(*request);
  if (status.is_ok()) status = enter(request, turns);
  if (!status.is_ok()) {
    refuse(request, status);
    return status;
  }
  hand_out(turns, true, request.get());
  while (true) {
    BatchRef batch;
    {
      std::lock_guard lock(mutex_);
      batch = std::move(request->to_lead);
      request->to_lead = nullptr;
      if (batch == nullptr && request->phase == BatchRequest::Phase::kEnded) break;
      if (batch == nullptr) request->signal.clear();
    }
    if (batch != nullptr) {
      run_batch(batch, true);
    } else {
      request->signal.wait({});
    }
  }
  for (const StreamedOutput& each : request->options.streams) {
    if (each.stream != nullptr) each.stream->wait_delivered();
  }
  return std::move(request->outcome);
}

void BatchQueue::submit(const RequestRef& request) {
  Batches turns;
  Status status = is_in_child() ? ForkGuard::error() : enter(request, turns);
  if (status.is_ok()) return hand_out(turns, true);
  // As a session does: it has ended, and is called back on this thread.
  refuse(request, status);
  if (request->has_callback) call_back(request, status);
  request->status = std::move(status);
  request->signal.set();
}

void BatchQueue::refuse(const RequestRef& request, const Status& why) {
  request->timer.disarm();
  for (const StreamedOutput& each : request->options.streams) {
    if (each.stream != nullptr) each.stream->end(why);
  }
}

void BatchQueue::stop(const RequestRef& request, StopReason reason) {
  std::unique_lock lock(mutex_);
  const BatchRef batch = request->batch;
  if (batch == nullptr || request->stop != StopReason::kRunning) return;
  if (request->phase == BatchRequest::Phase::kWaiting) {
    EDDY_DCHECK(batch->num_left > 0) << "a request waits for a batch without any";
    std::erase(batch->requests, request);
    batch->num_samples -= request->num_samples;
    const bool is_over = --batch->num_left == 0;
    if (is_over) take_away(batch);
    request->phase = BatchRequest::Phase::kEnding;
    request->batch = nullptr;
    lock.unlock();
    if (is_over) batch->timer.disarm();
    return finish(request, stop_status(reason, kWaits));
  }
  // One that runs alone has its deadline in the session.
  if (batch->is_alone() && reason == StopReason::kDeadline) return;
  request->stop = reason;
  if (batch->phase == Batch::Phase::kJoining) return;
  std::vector<RunHandle> runs;
  if (batch->run && batch->num_left == 1) runs.push_back(*batch->run);
  const bool ends = !batch->is_alone();
  if (ends) {
    --batch->num_left;
    --num_running_;
    request->phase = BatchRequest::Phase::kEnding;
    request->batch = nullptr;
  }
  lock.unlock();
  for (RunHandle& run : runs) run.cancel();
  if (ends) finish(request, stop_status(reason, kRuns));
}

void BatchQueue::stop_all(bool is_closing) {
  std::vector<RequestRef> waiting;
  Batches batches;
  {
    std::lock_guard lock(mutex_);
    is_closed_ = is_closed_ || is_closing;
    ++num_holds_;
    for (const auto& [key, batch] : open_) batches.push_back(batch);
    for (const auto& list : ready_) batches.insert(batches.end(), list.begin(), list.end());
    for (const BatchRef& batch : batches) {
      take_away(batch);
      for (const RequestRef& request : std::exchange(batch->requests, {})) {
        request->phase = BatchRequest::Phase::kEnding;
        request->batch = nullptr;
        waiting.push_back(request);
      }
    }
    for (const BatchRef& batch : in_flight_) {
      batch->is_cancelled = true;
    }
  }
  for (const BatchRef& batch : batches) batch->timer.disarm();
  is_closing ? session_->close() : session_->cancel_all();
  for (const RequestRef& request : waiting) {
    finish(request, stop_status(StopReason::kCancelled, kWaits));
  }
  let_go();
}

Status BatchQueue::check_wait(const BatchRequest& request) {
  if (is_in_child()) return ForkGuard::error();
  if (request.signal.is_set()) return Status::ok();
  const bool is_behind = request.has_callback && callbacks_->is_here();
  if (!is_behind && !SessionScope::may_not_wait_for(nullptr, threads_.get())) return Status::ok();
  return would_deadlock(
      "a callback may not wait for the handle of a run whose callback comes after it, nor a host "
      "function for a run of a session that shares its threads; go on when it has ended");
}

// ---------------------------------------------------------------- ends

void BatchQueue::finish(const RequestRef& request, Result<NamedTensors> outcome) {
  request->timer.disarm();
  if (outcome.is_ok() && request->deadline && Clock::now() > *request->deadline) {
    outcome = stop_status(StopReason::kDeadline, kRuns);
  }
  request->sorted.reset();
  request->inputs_or_null = nullptr;
  request->status = outcome.status();
  if (!request->has_callback) {
    request->outcome = std::move(outcome);
    return complete(request);
  }
  callbacks_->post([this, request, outcome = std::move(outcome)]() mutable {
    call_back(request, std::move(outcome));
    complete(request);
  });
}

void BatchQueue::call_back(const RequestRef& request, Result<NamedTensors> outcome) try {
  // It goes as it returns.
  std::exchange(request->callback, {})(std::move(outcome));
} catch (const std::exception& error) {
  if (log_) log_(std::string("a run's callback threw: ") + error.what());
} catch (...) {
  if (log_) log_("a run's callback threw something");
}

void BatchQueue::complete(const RequestRef& request) {
  request->owned.clear();
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(request->phase == BatchRequest::Phase::kEnding && num_live_ > 0)
      << "a request ends twice";
  request->phase = BatchRequest::Phase::kEnded;
  request->signal.set();
  --num_live_;
  if (is_unused()) idle_.notify_all();
}

void BatchQueue::let_go() {
  std::lock_guard lock(mutex_);
  EDDY_CHECK(num_holds_ > 0) << "a thread lets go that holds nothing";
  --num_holds_;
  if (is_unused()) idle_.notify_all();
}

void BatchQueue::wait_until_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return is_unused(); });
}

bool BatchQueue::may_wait() const {
  return !callbacks_->is_here() && !SessionScope::may_not_wait_for(nullptr, threads_.get());
}

void BatchQueue::close() {
  stop_all(true);
  if (may_wait()) wait_until_idle();
}

void BatchQueue::shut_down() {
  EDDY_CHECK(may_wait())
      << "a BatchingSession is destroyed inside a callback or host function, where it cannot wait "
         "for its requests; close() it there, and destroy it on another thread";
  Batches turns;
  {
    std::lock_guard lock(mutex_);
    is_draining_ = true;
    std::vector<BatchRef> gathering;
    for (const auto& [key, batch] : open_) gathering.push_back(batch);
    for (const BatchRef& batch : gathering) make_ready(batch);
    take_turns(turns);
  }
  hand_out(turns, true);
  wait_until_idle();
  callbacks_ = nullptr;
  session_ = nullptr;
  threads_ = nullptr;
}

}  // namespace eddy
