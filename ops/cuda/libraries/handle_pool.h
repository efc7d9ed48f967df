// HandlePool: a library's handles on the devices of this process, made where nobody has left one
// and never destroyed: to destroy one synchronizes its device, which waits for the loops of other
// sessions and spoils their recordings.
//
//   EDDY_ASSIGN_OR_RETURN(handle, pool.take(launcher, [&](Handle& made) { return … }));
//   pool.give_back(launcher, handle);     // of no stream
//
// It is part of the library's table, of which a process has one. What has a handle on it stays to
// the end of the process, too (CudaLauncher::keep_device).
// Threads: any. Cost: a lock; a new handle some ms, while nothing is recorded on the device.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "ops/cuda/launch/launcher.h"

namespace eddy {

template <typename Handle>
class HandlePool {
 public:
  template <typename Make>
  Result<Handle> take(CudaLauncher& launcher, const Make& make) {
    {
      std::lock_guard lock(mutex_);
      std::vector<Handle>& free = free_[launcher.device()];
      if (!free.empty()) {
        const Handle handle = free.back();
        free.pop_back();
        return handle;
      }
    }
    Handle handle = nullptr;
    EDDY_RETURN_IF_ERROR(launcher.alone_in_context([&] { return make(handle); }));
    std::lock_guard lock(mutex_);
    if (kept_.count(launcher.device()) == 0) {
      EDDY_RETURN_IF_ERROR(launcher.keep_device());
      kept_.insert(launcher.device());
    }
    return handle;
  }
  void give_back(const CudaLauncher& launcher, Handle handle) {
    std::lock_guard lock(mutex_);
    free_[launcher.device()].push_back(handle);
  }
  // Left for the next that needs one.
  size_t num_free(const CudaLauncher& launcher) const {
    std::lock_guard lock(mutex_);
    const auto found = free_.find(launcher.device());
    return found == free_.end() ? 0 : found->second.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::vector<Handle>> free_;  // under the mutex; by device
  std::set<const void*> kept_;                       // under the mutex; devices
};

}  // namespace eddy
