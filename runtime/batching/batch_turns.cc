// What a BatchQueue does with batches that have their turn: hand them to a thread, join, run, take
// apart.
#include <algorithm>
#include <new>
#include <utility>

#include "graph/base/check.h"
#include "runtime/batching/batch_queue.h"
#include "runtime/cpu/worker_pool.h"

namespace eddy {
namespace {

Status stopped() { return cancelled("the run was cancelled with its batch"); }

// What may be the fault of one request only, and was not asked for.
bool may_be_of_one(StatusCode code) {
  return code != StatusCode::kCancelled && code != StatusCode::kDeadlineExceeded &&
         code != StatusCode::kDeviceLost && code != StatusCode::kWouldDeadlock;
}

}  // namespace

// A thread that waits without a limit, or for this request alone; this one where it can.
RequestRef BatchQueue::leader_or_null(const Batch& batch, const BatchRequest* own_or_null) {
  RequestRef leader;
  for (const RequestRef& request : batch.requests) {
    if (!request->is_waited_for || (request->deadline && !batch.is_alone())) continue;
    if (leader == nullptr || request.get() == own_or_null) leader = request;
  }
  return leader;
}

void BatchQueue::hand_out(const Batches& turns, bool may_run_here,
                          const BatchRequest* own_or_null) {
  for (const BatchRef& batch : turns) {
    if (const RequestRef leader = leader_or_null(*batch, own_or_null)) {
      std::lock_guard lock(mutex_);
      leader->to_lead = batch;
      leader->signal.set();
    } else if (may_run_here) {
      run_batch(batch, false);
    } else {
      run_on_worker(batch);
    }
  }
}

void BatchQueue::run_on_worker(const BatchRef& batch) {
  struct Turn {
    std::shared_ptr<BatchQueue> queue;
    BatchRef batch;
  };
  auto turn = std::make_unique<Turn>(Turn{shared_from_this(), batch});
  threads_->workers()->enqueue(
      [](void* context) {
        const std::unique_ptr<Turn> own(static_cast<Turn*>(context));
        own->queue->run_batch(own->batch, false);
      },
      turn.get());
  [[maybe_unused]] const auto* of_the_worker = turn.release();
}

// `helps`: this thread waits for a request of the batch.
void BatchQueue::run_batch(const BatchRef& batch, bool helps) {
  batch->timer.disarm();
  try {
    begin_run(batch, helps);
  } catch (const std::bad_alloc&) {
    end_batch(batch, resource_exhausted("no memory to join a batch's inputs"));
  }
  let_go();
}

RunOptions BatchQueue::options_of(const Batch& batch) const {
  if (!batch.is_alone()) return {.priority = batch.priority};
  RunOptions options = batch.requests[0]->options;
  if (batch.requests[0]->deadline) {
    options.timeout = *batch.requests[0]->deadline - std::chrono::steady_clock::now();
  }
  return options;
}

void BatchQueue::begin_run(const BatchRef& batch, bool helps) {
  const std::vector<RequestRef>& requests = batch->requests;
  NamedTensors inputs;
  if (batch->is_alone()) {
    inputs = *requests[0]->inputs_or_null;
  } else {
    std::vector<const SortedInputs*> sorted;
    for (const RequestRef& request : requests) sorted.push_back(&*request->sorted);
    inputs = values_.join(sorted);
  }
  if (!end_stopped(batch)) return end_batch(batch, stopped());
  if (batching_.on_batch) batching_.on_batch(requests.size(), batch->num_samples);
  RunHandle run = session_->run_async(
      std::move(inputs),
      [this, batch](Result<NamedTensors> outputs) { end_batch(batch, std::move(outputs)); },
      options_of(*batch));
  bool is_stopped = false;
  {
    std::lock_guard lock(mutex_);
    batch->run = run;
    is_stopped = batch->is_cancelled || batch->num_left == 0 ||
                 (batch->is_alone() && requests[0]->stop != StopReason::kRunning);
  }
  if (is_stopped) run.cancel();
  if (helps) (void)run.wait();
}

// Callers' memory is read no more: requests that were stopped meanwhile end. False: none is left.
bool BatchQueue::end_stopped(const BatchRef& batch) {
  std::vector<RequestRef> ended;
  bool is_wanted = false;
  {
    std::lock_guard lock(mutex_);
    EDDY_DCHECK(batch->phase == Batch::Phase::kJoining) << "a batch begins to run twice";
    batch->phase = Batch::Phase::kRunning;
    for (const RequestRef& request : batch->requests) {
      if (batch->is_alone() || request->stop == StopReason::kRunning) continue;
      request->phase = BatchRequest::Phase::kEnding;
      request->batch = nullptr;
      --batch->num_left;
      --num_running_;
      ended.push_back(request);
    }
    is_wanted = batch->num_left > 0 && !batch->is_cancelled;
  }
  for (const RequestRef& request : ended) {
    finish(request, request->stop == StopReason::kDeadline
                        ? deadline_exceeded("the run passed its deadline as its batch began")
                        : stopped());
  }
  return is_wanted;
}

// The run of several requests has failed, perhaps by the fault of one.
bool BatchQueue::is_blamed(const Batch& batch, const Status& status) {
  return !status.is_ok() && !batch.is_alone() && may_be_of_one(status.code());
}

// The run has ended, or there was none.
void BatchQueue::end_batch(const BatchRef& batch, Result<NamedTensors> outputs) {
  std::vector<RequestRef> ended;
  Batches turns;
  {
    std::lock_guard lock(mutex_);
    in_flight_.remove(batch);
    const bool is_blamed = BatchQueue::is_blamed(*batch, outputs.status());
    const bool is_repeated = is_blamed && !batch->is_cancelled && !is_closed_;
    if (is_blamed && !is_repeated) outputs = stopped();
    const auto& requests = batch->requests;
    // In front of those that wait, in their order.
    for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
      if ((*request)->phase != BatchRequest::Phase::kRunning) continue;
      EDDY_DCHECK(num_running_ > 0) << "more requests end than run";
      --num_running_;
      if (is_repeated) {
        BatchRef alone = make_batch(*request, {});
        (*request)->phase = BatchRequest::Phase::kWaiting;
        (*request)->batch = alone;
        alone->requests.push_back(*request);
        alone->num_left = 1;
        alone->num_samples = (*request)->num_samples;
        make_ready(alone, true);
      } else {
        (*request)->phase = BatchRequest::Phase::kEnding;
        (*request)->batch = nullptr;
        ended.push_back(*request);
      }
    }
    take_turns(turns);
  }
  // The next batches run while this one is taken apart.
  hand_out(turns, true);
  std::ranges::reverse(ended);
  finish_all(*batch, ended, outputs);
}

// `ended` are some of the batch's requests, in their order.
void BatchQueue::finish_all(const Batch& batch, const std::vector<RequestRef>& ended,
                            const Result<NamedTensors>& outputs) {
  auto next = ended.begin();
  int64_t begin = 0;
  for (const RequestRef& request : batch.requests) {
    const int64_t count = request->num_samples;
    if (next != ended.end() && *next == request) {
      ++next;
      finish(request, part_of(batch, begin, count, outputs));
    }
    begin += count;
  }
  EDDY_DCHECK(next == ended.end()) << "a request of another batch, or out of order";
}

Result<NamedTensors> BatchQueue::part_of(const Batch& batch, int64_t begin, int64_t count,
                                         const Result<NamedTensors>& outputs) const try {
  if (!outputs.is_ok() || batch.is_alone()) return outputs;
  return values_.part(*outputs, batch.num_samples, begin, count);
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for a request's part of its batch's outputs");
}

}  // namespace eddy
