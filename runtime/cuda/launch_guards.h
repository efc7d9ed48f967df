// LaunchGuards: which streams capture launches for a body that holds several iterations
// (runtime/device/graph_capture.h, begin_again), what those must look at before they do anything,
// and how many there were.
//
//   the capture   watch(stream, null)  … watch(stream, guard) … forget(stream)
//   launch_grid   take(stream): the launch is counted; its guard, or null
//
// A guard is a word in the device's memory, 0: the launch does nothing. The count is how a capture
// finds out whether anything else got into the body, which would not look.
//
// Threads: any; one stream's calls come from one thread. Cost: a load where no stream is watched.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "runtime/cuda/cuda_types.h"

namespace eddy {

class LaunchGuards {
 public:
  // Goes on counting where the stream is watched already.
  void watch(CuStream stream, const uint32_t* guard_or_null) {
    std::lock_guard lock(mutex_);
    watched_[stream].guard_or_null = guard_or_null;
    num_watched_.store(watched_.size(), std::memory_order_relaxed);
  }
  void forget(CuStream stream) {
    std::lock_guard lock(mutex_);
    watched_.erase(stream);
    num_watched_.store(watched_.size(), std::memory_order_relaxed);
  }
  const uint32_t* take(CuStream stream) {
    if (num_watched_.load(std::memory_order_relaxed) == 0) return nullptr;
    std::lock_guard lock(mutex_);
    const auto found = watched_.find(stream);
    if (found == watched_.end()) return nullptr;
    ++found->second.num_launches;
    return found->second.guard_or_null;
  }
  // Since the stream is watched.
  uint64_t num_launches(CuStream stream) const {
    std::lock_guard lock(mutex_);
    const auto found = watched_.find(stream);
    return found == watched_.end() ? 0 : found->second.num_launches;
  }

 private:
  struct Watched {
    const uint32_t* guard_or_null = nullptr;
    uint64_t num_launches = 0;
  };

  mutable std::mutex mutex_;
  std::map<CuStream, Watched> watched_;  // under the mutex
  // Their number. A capture that watches a stream launches on it from the same thread, so order is
  // its own.
  std::atomic<size_t> num_watched_{0};
};

}  // namespace eddy
