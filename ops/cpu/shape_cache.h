// ShapeCache: what a kernel made for the shapes it has met, a few of them, so that a shape that
// comes back finds its plan and a shape that changes for ever does not fill the memory.
//
// Threads: any number. A plan found stays alive while its shared_ptr does, even if it is dropped
// from the cache meanwhile. Two threads that miss at once may both make a plan; one is kept.
// Cost: a lock and a scan of at most kMaxEntries keys.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/base/check.h"

namespace eddy::cpu {

template <typename Key, typename Plan>
class ShapeCache {
 public:
  static constexpr size_t kMaxEntries = 16;

  std::shared_ptr<const Plan> find_or_null(const Key& key) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, plan] : entries_) {
      if (known == key) return plan;
    }
    return nullptr;
  }

  // The oldest entry gives way when the cache is full.
  void add(const Key& key, std::shared_ptr<const Plan> plan) const {
    EDDY_DCHECK(plan != nullptr) << "null says that there is no plan";
    const std::lock_guard lock(mutex_);
    if (entries_.size() == kMaxEntries) entries_.erase(entries_.begin());
    entries_.emplace_back(key, std::move(plan));
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<Key, std::shared_ptr<const Plan>>> entries_;
};

}  // namespace eddy::cpu
