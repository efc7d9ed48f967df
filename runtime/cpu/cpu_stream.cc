#include "runtime/cpu/cpu_stream.h"


#include <thread>

#include "graph/base/check.h"
#include "graph/base/processor.h"

namespace eddy {

bool CpuStreamEvent::is_complete() const {
  return completed_.load(std::memory_order_acquire) >= issued_.load(std::memory_order_acquire);
}

uint64_t CpuStreamEvent::issue_record() {
  return issued_.fetch_add(1, std::memory_order_acq_rel) + 1;
}

void CpuStreamEvent::complete_record(uint64_t generation) {
  EDDY_DCHECK(generation > 0 && generation <= issued()) << "record " << generation << " is unknown";
  std::vector<EventListener*> ready;
  {
    std::lock_guard lock(mutex_);
    if (completed_.load(std::memory_order_relaxed) < generation) {
      completed_.store(generation, std::memory_order_release);
    }
    std::erase_if(waiting_, [&](const Waiting& waiting) {
      if (waiting.generation > generation) return false;
      ready.push_back(waiting.listener);
      return true;
    });
  }
  for (EventListener* listener : ready) listener->on_complete();
}

bool CpuStreamEvent::listen_for(uint64_t generation, EventListener& listener) {
  EDDY_DCHECK(generation <= issued()) << "record " << generation << " is never made";
  std::lock_guard lock(mutex_);
  if (completed_.load(std::memory_order_acquire) >= generation) return true;
  waiting_.push_back({generation, &listener});
  return false;
}

bool CpuStreamEvent::listen_or_complete(EventListener& listener) {
  return listen_for(issued(), listener);
}

CpuStream::~CpuStream() {
  for (;;) {
    {
      // The worker that made the stream idle may still hold the mutex.
      std::lock_guard lock(mutex_);
      EDDY_DCHECK(queue_.empty() == is_idle()) << "the queue and its count differ";
      if (is_idle()) return;
      const Item& front = queue_.front();
      EDDY_CHECK(front.kind != Item::Kind::kWait || front.event->has_completed(front.generation))
          << "a stream is destroyed while it waits for a run or event that has not ended; wait for "
             "the run's handle first";
    }
    std::this_thread::yield();
  }
}

bool CpuStream::launch(const Work& work) {
  EDDY_DCHECK(work.run != nullptr) << "work that does nothing is launched";
  if (work.is_cheap && is_idle()) {
    work.run(work.context);
    return true;
  }
  Item item;
  item.work = work;
  push(item);
  return true;
}

bool CpuStream::record(Event& event) {
  auto& mine = static_cast<CpuStreamEvent&>(event);
  const uint64_t generation = mine.issue_record();
  if (is_idle()) {
    mine.complete_record(generation);
  } else {
    push({Item::Kind::kRecord, {}, &mine, generation, nullptr});
  }
  return true;
}

bool CpuStream::wait(Event& event) {
  auto& mine = static_cast<CpuStreamEvent&>(event);
  if (!mine.is_complete()) push({Item::Kind::kWait, {}, &mine, mine.issued(), nullptr});
  return true;
}

bool CpuStream::hold(std::shared_ptr<Gate> gate) {
  EDDY_DCHECK(gate != nullptr) << "a stream is held by no gate";
  auto& mine = static_cast<CpuGate&>(*gate);
  push({Item::Kind::kWait, {}, &mine.event_, mine.generation_, std::move(gate)});
  return true;
}

bool CpuStream::listen_or_idle(EventListener& listener) {
  std::lock_guard lock(mutex_);
  if (is_idle()) return true;
  idle_listeners_.push_back(&listener);
  return false;
}

void CpuStream::push(const Item& item) {
  EDDY_DCHECK((item.kind == Item::Kind::kWork) == (item.event == nullptr))
      << "an item of two kinds";
  bool was_idle;
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(item);
    was_idle = pending_.fetch_add(1, std::memory_order_acq_rel) == 0;
    EDDY_DCHECK(queue_.size() == pending_.load(std::memory_order_relaxed))
        << queue_.size() << " commands are queued";
  }
  if (was_idle) schedule();
}

void CpuStream::schedule() {
  pool_.enqueue([](void* self) { static_cast<CpuStream*>(self)->drain(); }, this);
}

void CpuStream::on_complete() { schedule(); }

void CpuStream::drain() {
  const uint64_t began = processor_ticks();
  for (;;) {
    Item item;
    {
      std::lock_guard lock(mutex_);
      EDDY_DCHECK(!queue_.empty()) << "an idle stream is drained";
      item = queue_.front();
    }
    if (item.kind == Item::Kind::kWait && !item.event->listen_for(item.generation, *this)) return;
    if (item.kind == Item::Kind::kWork) item.work.run(item.work.context);
    if (item.kind == Item::Kind::kRecord) item.event->complete_record(item.generation);
    std::vector<EventListener*> listeners;
    {
      std::lock_guard lock(mutex_);
      queue_.pop_front();
      if (pending_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        if (!pool_.has_waiting() || processor_ticks() - began < WorkerPool::kSliceCycles) continue;
        return schedule();
      }
      listeners.swap(idle_listeners_);
      EDDY_DCHECK(queue_.empty()) << "a stream says that it is idle, and is not";
    }
    // Idle now: the issuer may destroy the stream at once, so nothing of it is touched below.
    for (EventListener* listener : listeners) listener->on_complete();
    return;
  }
}

}  // namespace eddy
