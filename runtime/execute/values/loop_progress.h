// LoopProgress: how far a while node of one run is.
//
// The iteration is an int64 kept here; its slot is volatile (sharing it copies). While a device
// drives the loop, the iteration is read where the device counts.
//
// Threads: the strand that runs the loop writes; others read, for messages only (relaxed).
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/execute/values/slot.h"

namespace eddy {

class LoopProgress {
 public:
  LoopProgress() {
    static_assert(sizeof(counter_) == sizeof(int64_t));
    iteration_slot_.borrow({&counter_, nullptr, 0, ElementType::kInt64});
    iteration_slot_.is_volatile = true;
  }
  LoopProgress(const LoopProgress&) = delete;
  LoopProgress& operator=(const LoopProgress&) = delete;

  // Counted by a strand that goes on into the next iteration by itself.
  struct Tail {
    std::atomic<int64_t> iteration{-1};  // as counter_
  };

  Slot& iteration_slot() { return iteration_slot_; }
  int64_t iteration() const {
    const int64_t* progress = progress_or_null_.load(std::memory_order_acquire);
    if (progress == nullptr) return counter_.load(std::memory_order_relaxed);
    return std::atomic_ref<int64_t>(const_cast<int64_t&>(*progress))
        .load(std::memory_order_relaxed);
  }
  // The iteration whose `after` began last; that of `before` is iteration().
  int64_t begun() const { return begun_.load(std::memory_order_relaxed); }
  // The host's own count.
  const std::atomic<int64_t>& counter() const { return counter_; }
  // How often the loop will run this time, from enter on; negative: data decide. Belongs to the
  // strand that runs the loop, and to those of its blocks.
  const int64_t& settled_trips() const { return settled_trips_; }
  // A device counts the iterations, in that word, until the loop is entered again.
  void drive_from(const int64_t* progress) {
    if (is_due_ && !is_driven_by_device()) past_ += iteration();
    is_due_ = true;
    progress_or_null_.store(progress, std::memory_order_release);
  }
  bool is_driven_by_device() const {
    return progress_or_null_.load(std::memory_order_relaxed) != nullptr;
  }
  // Iterations since this was last asked, of a run whose strands have ended; of a loop that a
  // device has driven several times since, one after the other, those of the last time.
  int64_t take_iterations() {
    const int64_t taken = past_ + (is_due_ ? iteration() : 0);
    past_ = 0;
    is_due_ = false;
    return taken;
  }

 private:
  Slot iteration_slot_;
  // Of times before this one, not taken yet. The strand's that runs the loop, then the run's end's.
  int64_t past_ = 0;
  bool is_due_ = false;  // those of this time are not taken yet

 protected:
  ~LoopProgress() = default;

  // The host counts from 0.
  void begin() {
    if (is_due_) past_ += iteration();
    is_due_ = true;
    counter_.store(0, std::memory_order_relaxed);
    progress_or_null_.store(nullptr, std::memory_order_release);
  }

  std::atomic<int64_t> counter_{0};
  std::atomic<int64_t> begun_{0};
  std::atomic<const int64_t*> progress_or_null_{nullptr};
  int64_t settled_trips_ = -1;
};

}  // namespace eddy
