// WorkWatch: wakes what sleeps because a device has nothing to do when it has something again.
//
//   sleeper   watch(); nothing under way? then sleep
//   issuer    counts its work; tell()
//
// Contract: a waker is quick, only pokes a sleeper (Scheduler::poke) and calls nothing of the
// device. What polls because work is under way watches again before each sleep. Memory
// order: the flag, the count that the issuer raises and the sleeper's look at it are sequentially
// consistent, so either the sleeper sees the work or the issuer sees the watch
// (tests/runtime/models/work_watch.pml tries every interleaving). Threads: any; after remove() the
// waker is not running and never runs again. Cost: tell() is a load while nothing watches.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

class WorkWatch {
 public:
  void add(const void* key, std::function<void()> waker) {
    std::lock_guard lock(mutex_);
    EDDY_DCHECK(waker != nullptr) << "nothing would be woken";
    wakers_.emplace_back(key, std::move(waker));
  }
  void remove(const void* key) {
    std::lock_guard lock(mutex_);
    std::erase_if(wakers_, [key](const auto& entry) { return entry.first == key; });
  }
  void watch() { is_watched_.store(true); }
  void tell() {
    if (!is_watched_.load() || !is_watched_.exchange(false)) return;
    std::lock_guard lock(mutex_);
    for (const auto& [key, waker] : wakers_) waker();
  }

 private:
  std::atomic<bool> is_watched_{false};
  std::mutex mutex_;
  std::vector<std::pair<const void*, std::function<void()>>> wakers_;  // under the mutex
};

}  // namespace eddy
