// CudaRecord, CudaEventPool, CudaEvent: records of a point in a stream.
//
// A driver's event holds only its latest record, and a record of ours may be issued to the driver
// later than it was called (its stream was out of credit). So each record takes a driver's event
// of its own from a pool and gives it back when nothing names it any more: a wait names exactly
// the record that was the latest when it was called, as promised.
//
//   called ──▶ issued to the driver ──▶ complete        (or complete at once: the device is lost)
//
// Of an event that only the host waits for, a record is a position of its stream
// (stream_progress.h): the driver is neither given it nor asked after it.
//
// Cost: a pooled record makes no driver object; is_complete() asks the driver (cuEventQuery) until
// it is complete; of a position it reads a word. Threads: any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/stream_progress.h"
#include "runtime/device/device.h"

namespace eddy {

// Driver's events without timing, reused.
class CudaEventPool {
 public:
  explicit CudaEventPool(CudaContext& context) : context_(context) {}
  ~CudaEventPool();  // every event must have been given back

  // A refusal loses the device: without its record, a wait would see an older one.
  Result<CuEvent> acquire();
  void release(CuEvent event);

 private:
  CudaContext& context_;
  std::mutex mutex_;
  std::vector<CuEvent> free_;  // under the mutex
  size_t num_made_ = 0;        // under the mutex
};

class CudaRecord {
 public:
  // `event` comes from the pool and goes back to it.
  CudaRecord(CudaContext& context, CudaEventPool& pool, CuEvent event)
      : context_(context), pool_or_null_(&pool), event_(event) {}
  // Of what was requested of a stream up to there.
  CudaRecord(CudaContext& context, std::shared_ptr<StreamProgress> progress, uint64_t position)
      : context_(context),
        progress_or_null_(std::move(progress)),
        position_(position),
        state_(State::kIssued) {}
  ~CudaRecord() {
    if (pool_or_null_ != nullptr) pool_or_null_->release(event_);
  }
  CudaRecord(const CudaRecord&) = delete;
  CudaRecord& operator=(const CudaRecord&) = delete;

  CuEvent event() const {
    EDDY_CHECK(event_ != nullptr) << "a stream waits for an event that is for the host alone";
    return event_;
  }
  bool is_issued() const { return state_.load(std::memory_order_acquire) != State::kCalled; }
  // By the stream, once the driver has it.
  void mark_issued() {
    EDDY_DCHECK(state_.load(std::memory_order_relaxed) == State::kCalled) << "issued twice";
    state_.store(State::kIssued, std::memory_order_release);
  }
  // Asks the driver, or looks how far the stream is. Complete too when the device is lost.
  bool is_complete();

 private:
  enum class State : uint8_t { kCalled, kIssued, kComplete };
  CudaContext& context_;
  CudaEventPool* const pool_or_null_ = nullptr;  // of the event
  const CuEvent event_ = nullptr;
  const std::shared_ptr<StreamProgress> progress_or_null_;
  const uint64_t position_ = 0;
  std::atomic<State> state_{State::kCalled};
};

// Listeners of records and streams, called by poll().
class CudaPollList {
 public:
  // False: the record is complete already, the listener is not kept.
  bool add(std::shared_ptr<CudaRecord> record, EventListener& listener);
  bool is_empty() {
    std::lock_guard lock(mutex_);
    return entries_.empty();
  }
  // Takes out the listeners whose records are complete.
  void take_ready(std::vector<EventListener*>& ready);

 private:
  struct Entry {
    std::shared_ptr<CudaRecord> record;
    EventListener* listener;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  // under the mutex
};

class CudaEvent : public Event {
 public:
  explicit CudaEvent(CudaPollList& polled, bool is_for_host = false)
      : polled_(polled), is_for_host_(is_for_host) {}

  bool is_complete() const override {
    const auto record = latest();
    return record == nullptr || record->is_complete();
  }
  bool listen_or_complete(EventListener& listener) override {
    auto record = latest();
    return record == nullptr || !polled_.add(std::move(record), listener);
  }

  // For streams.
  bool is_for_host() const { return is_for_host_; }
  std::shared_ptr<CudaRecord> latest() const {
    std::lock_guard lock(mutex_);
    return latest_;
  }
  void set_latest(std::shared_ptr<CudaRecord> record) {
    std::lock_guard lock(mutex_);
    latest_.swap(record);
  }

 private:
  CudaPollList& polled_;
  const bool is_for_host_;
  mutable std::mutex mutex_;
  std::shared_ptr<CudaRecord> latest_;  // under the mutex
};

}  // namespace eddy
