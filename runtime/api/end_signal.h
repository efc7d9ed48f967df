// EndSignal: a word on which threads wait for an end.
//
// set() is released to the threads that see it, and is the last that its caller does with the
// signal: a thread that has seen it may destroy the signal at once. The word is named once more
// then, to wake by its address, and not read (tests/runtime/models/run_end.pml).
//
// Threads: set and wait from any; clear by the owner, while it is set. Cost: set() is one exchange,
// and a system call where a thread sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/coroutine/futex.h"
#include "runtime/device/device.h"

namespace eddy {

class EndSignal {
 public:
  struct Wait {
    Device* polled_or_null = nullptr;  // moves only while it is polled
    int num_spins = 0;                 // before the thread sleeps
    const std::chrono::steady_clock::time_point* deadline_or_null = nullptr;
  };

  bool is_set() const { return word_.load(std::memory_order_acquire) == kSet; }
  void clear() { word_.store(kClear, std::memory_order_relaxed); }
  void set() {
    std::atomic<uint32_t>* const word = &word_;
    if (word->exchange(kSet, std::memory_order_acq_rel) == kAwaited) futex_wake_all(word);
  }
  // Whether it was set before the deadline.
  bool wait(const Wait& how);

 private:
  enum : uint32_t { kClear, kAwaited, kSet };  // awaited: a thread sleeps until it is set

  std::atomic<uint32_t> word_{kSet};
};

}  // namespace eddy
