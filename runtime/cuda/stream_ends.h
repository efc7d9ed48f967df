// StreamEnds: keepers of things by native stream are called when a stream ends, so that nothing
// is kept for streams that are gone, or found by a new stream at the same address.
//
//   keeper   add(key, …) … remove(key)
//   the owner of a stream that kernels have been issued to   tell(stream), then destroys it
//
// Contract: the stream is idle or its device lost, and the context current. A keeper neither ends
// streams nor adds or removes keepers. Threads: any; after remove() the keeper is not called and
// never will be.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "runtime/cuda/cuda_types.h"

namespace eddy {

class StreamEnds {
 public:
  using Keeper = std::function<void(CuStream)>;

  void add(const void* key, Keeper keeper) {
    std::lock_guard lock(mutex_);
    EDDY_DCHECK(keeper != nullptr) << "nobody is told of streams that end";
    keepers_.emplace_back(key, std::move(keeper));
  }
  void remove(const void* key) {
    std::lock_guard lock(mutex_);
    std::erase_if(keepers_, [key](const auto& entry) { return entry.first == key; });
  }
  void tell(CuStream stream) {
    std::lock_guard lock(mutex_);
    for (const auto& [key, keeper] : keepers_) keeper(stream);
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<const void*, Keeper>> keepers_;  // under the mutex
};

}  // namespace eddy
