#include "runtime/cuda/cuda_event.h"

#include "graph/base/check.h"

namespace eddy {

CudaEventPool::~CudaEventPool() {
  EDDY_CHECK(free_.size() == num_made_) << "an event is still in use when its device goes";
  const CudaContext::Use use(context_);
  for (CuEvent event : free_) context_.api().event_destroy(event);
}

Result<CuEvent> CudaEventPool::acquire() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    const CudaContext::Use use(context_);
    CuEvent event = nullptr;
    EDDY_RETURN_IF_ERROR(context_.check_order(
        context_.api().event_create(&event, kCuEventDisableTiming), "cuEventCreate"));
    ++num_made_;
    return event;
  }
  const CuEvent event = free_.back();
  free_.pop_back();
  return event;
}

void CudaEventPool::release(CuEvent event) {
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(event != nullptr && free_.size() < num_made_)
      << "of " << num_made_ << " events more than all come back";
  free_.push_back(event);
}

bool CudaRecord::is_complete() {
  const State state = state_.load(std::memory_order_acquire);
  if (state == State::kComplete || context_.is_lost()) return true;
  if (state == State::kCalled) return false;
  if (progress_or_null_ != nullptr) {
    if (progress_or_null_->has_completed(position_)) return true;
    progress_or_null_->want_mark();
    return false;
  }
  const CudaContext::Use use(context_);
  const CuResult result = context_.api().event_query(event_);
  if (result == CuResult::kNotReady) return false;
  // Any other answer loses the device, and then the record counts as complete.
  const Status status = context_.check_order(result, "cuEventQuery");
  state_.store(State::kComplete, std::memory_order_release);
  return true;
}

bool CudaPollList::add(std::shared_ptr<CudaRecord> record, EventListener& listener) {
  EDDY_DCHECK(record != nullptr) << "a listener waits for no record";
  if (record->is_complete()) return false;
  std::lock_guard lock(mutex_);
  entries_.push_back({std::move(record), &listener});
  return true;
}

void CudaPollList::take_ready(std::vector<EventListener*>& ready) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) {
    if (!entry.record->is_complete()) return false;
    ready.push_back(entry.listener);
    return true;
  });
}

}  // namespace eddy
