// StreamKeepers: what keeps things by native stream. A keeper is called with a stream that ends, so
// that nothing is kept for streams that are gone or found by a new stream at the same address; or
// with one that has been made for recordings, so that nothing has to be made inside one. A context
// has a list for each.
//
//   keeper   add(key, …) … remove(key)
//   the owner of a stream that kernels are issued to   tell(stream), before it destroys it
//
// Contract: the stream is idle or its device lost, captures nothing, and the context is current. A
// keeper neither ends streams nor adds or removes keepers. Threads: any; after remove() the keeper
// is not called and never will be.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "runtime/cuda/cuda_types.h"

namespace eddy {

class StreamKeepers {
 public:
  using Keeper = std::function<void(CuStream)>;

  void add(const void* key, Keeper keeper) {
    std::lock_guard lock(mutex_);
    EDDY_DCHECK(keeper != nullptr) << "nobody is told of streams";
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
