// PlainOrder: which capture streams capture into a loop's body, where kernels are launched in plain
// order, each behind the end of the one before it.
//
// Why: a GPU starts the kernels of a conditional WHILE again each round, and is lost where it seems
// to hold the last round's still (Xid 13, SKEDCHECK22_INVALIDATE_ACTIVE_QMD). That takes work of
// other streams beside the loop, and a short round. Seen on an H200, driver 580.159, beside 4 to 28
// streams that launch one kernel after the other, loops of n kernels of a microsecond in a chain:
//
//   n   loops   launched early             in plain order
//   1   1       lost in the first 3,000    lost in the first 3,000 rounds
//   2   1       lost after 1,000           not in 10^6
//   2   4                                  lost after 10^5
//   3   8       lost after 8 10^5          not in 8 10^6
//
// Also n = 2 with a first kernel of 2 µs (4 loops: lost after 2 10^5), not with one of 4 µs in 3
// 10^6; nested loops with 3 kernels inside, early: lost, plain: not in 2 10^6. Alone on the GPU,
// five loops of one kernel run.
//
// So a body has kLeastKernels kernels at the least, some of which may do nothing, and none of them
// begins early. A library's launches are its own.
//
// Threads: any; one stream's calls come from one thread. Cost: a load where no loop is captured.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>

#include "runtime/cuda/cuda_types.h"

namespace eddy {

class PlainOrder {
 public:
  static constexpr size_t kLeastKernels = 3;

  void add(CuStream stream) {
    std::lock_guard lock(mutex_);
    streams_.insert(stream);
    num_streams_.store(streams_.size(), std::memory_order_relaxed);
  }
  void remove(CuStream stream) {
    std::lock_guard lock(mutex_);
    streams_.erase(stream);
    num_streams_.store(streams_.size(), std::memory_order_relaxed);
  }
  bool has(CuStream stream) const {
    if (num_streams_.load(std::memory_order_relaxed) == 0) return false;
    std::lock_guard lock(mutex_);
    return streams_.contains(stream);
  }

 private:
  mutable std::mutex mutex_;
  std::set<CuStream> streams_;  // under the mutex
  // Their number. A capture adds its streams and launches on them from one thread.
  std::atomic<size_t> num_streams_{0};
};

}  // namespace eddy
