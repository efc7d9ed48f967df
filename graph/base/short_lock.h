// ShortLock: a lock for sections of some 20 ns, which are not worth a call to the system.
//
// To take it is one locked operation where it is free, to leave it a store. A thread that finds it
// taken spins for a few microseconds and then naps, again and again: a holder that takes longer
// has lost its processor, and would not get it back from a thread of higher priority that spins.
// No thread is woken, so that leaving costs nothing; a nap is short. A section that now and then
// takes microseconds (SessionRuns sends a worker in one) makes others nap, no more: 16 clients of
// one session ran 1.1 to 1.2 times as many requests as with std::mutex.
//
// As std::lock_guard's mutexes. Threads: any; unfair. After fork() a child must leave it alone.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "graph/base/check.h"
#include "graph/base/processor.h"

namespace eddy {

class ShortLock {
 public:
  void lock() {
    if (is_taken_.test_and_set(std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() {
    EDDY_DCHECK(is_taken_.test(std::memory_order_relaxed)) << "nobody holds the lock";
    is_taken_.clear(std::memory_order_release);
  }

 private:
  static constexpr int kSpins = 100;
  static constexpr std::chrono::microseconds kNap{20};

  [[gnu::noinline]] void wait() {
    int num_spins = 0;
    do {
      while (is_taken_.test(std::memory_order_relaxed)) {
        if (++num_spins <= kSpins) {
          cpu_relax();
        } else {
          std::this_thread::sleep_for(kNap);
        }
      }
    } while (is_taken_.test_and_set(std::memory_order_acquire));
  }

  std::atomic_flag is_taken_ = ATOMIC_FLAG_INIT;
};

}  // namespace eddy
