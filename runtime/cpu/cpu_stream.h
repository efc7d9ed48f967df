// CpuStream and CpuStreamEvent: a serial queue drained by the pool's workers.
//
// Cheap work on an idle stream runs at once on the issuing thread: an empty queue means that
// nothing can be overtaken. Everything else is queued; one worker at a time drains the queue, and
// a wait for an incomplete event parks the queue until the event's recorder restarts it. While
// other tasks wait for a worker, the drainer gives way every WorkerPool::kSliceCycles.
//
//   idle ──launch(cheap)──▶ idle           (ran here)
//   idle ──push──▶ draining ──empty──▶ idle
//   draining ──wait──▶ parked ──event──▶ draining
//
// pending_ counts queued commands that have not finished: the issuer adds (release, after the
// push), the drainer subtracts (release) and the issuer's acquire load of zero sees all effects.
#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "runtime/cpu/worker_pool.h"
#include "runtime/device/device.h"

namespace eddy {

class CpuStreamEvent : public Event {
 public:
  bool is_complete() const override;
  bool listen_or_complete(EventListener& listener) override;

  // CpuStream calls these: a new record was issued; then, in stream order, it completes.
  uint64_t issue_record();
  void complete_record(uint64_t generation);
  // The latest record issued; 0 when none.
  uint64_t issued() const { return issued_.load(std::memory_order_acquire); }
  bool has_completed(uint64_t generation) const {
    return completed_.load(std::memory_order_acquire) >= generation;
  }
  // True when record `generation` is complete; otherwise the listener is kept.
  bool listen_for(uint64_t generation, EventListener& listener);

 private:
  struct Waiting {
    uint64_t generation;
    EventListener* listener;
  };
  std::atomic<uint64_t> issued_{0};
  std::atomic<uint64_t> completed_{0};  // released by complete_record
  std::mutex mutex_;
  std::vector<Waiting> waiting_;  // under the mutex
};

class CpuGate : public Gate {
 public:
  CpuGate() : generation_(event_.issue_record()) {}
  void open() override { event_.complete_record(generation_); }

 private:
  friend class CpuStream;  // waits for the event
  CpuStreamEvent event_;
  const uint64_t generation_;
};

class CpuStream : public Stream, private EventListener {
 public:
  explicit CpuStream(WorkerPool& pool) : pool_(pool) {}
  // Waits for what is queued. Nothing of that may wait for what has not ended, since the stream
  // then might stay for ever: a programmer error. So it is in a task of the stream's own pool,
  // which may have no other worker to run what is queued.
  ~CpuStream() override;

  bool launch(const Work& work) override;
  bool record(Event& event) override;
  bool wait(Event& event) override;
  bool hold(std::shared_ptr<Gate> gate) override;
  bool is_idle() const override { return pending_.load(std::memory_order_acquire) == 0; }
  bool listen_or_idle(EventListener& listener) override;

 private:
  struct Item {
    enum class Kind { kWork, kRecord, kWait } kind = Kind::kWork;
    Work work;
    CpuStreamEvent* event = nullptr;
    uint64_t generation = 0;
    std::shared_ptr<Gate> keep_alive = nullptr;  // owner of `event`, for gates
  };
  void push(const Item& item);
  void drain();
  void on_complete() override;  // the event a parked queue waits for
  void schedule();

  WorkerPool& pool_;
  std::atomic<uint64_t> pending_{0};
  std::mutex mutex_;
  std::deque<Item> queue_;                      // under the mutex
  std::vector<EventListener*> idle_listeners_;  // under the mutex
};

}  // namespace eddy
