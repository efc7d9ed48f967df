// PlanCache: what a library has planned for the shapes met last, at most so many.
//
// Shapes that change from run to run (a decoder's growing cache) would fill memory with descriptors
// otherwise. Each user of a plan holds a reference, so one that is dropped meanwhile stays until
// its use ends. Dropped plans are made again, and the libraries plan equal shapes equally: the same
// bits.
//
// Threads: the owner's mutex is held. Cost: O(log plans); a drop destroys the plan.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

template <typename Plan>
class PlanCache {
 public:
  using Key = std::vector<int64_t>;
  explicit PlanCache(size_t max_plans) : max_plans_(max_plans) {}

  // Null: it is not there.
  std::shared_ptr<Plan> find(const Key& key) {
    const auto known = plans_.find(key);
    if (known == plans_.end()) return nullptr;
    by_use_.splice(by_use_.begin(), by_use_, known->second.use);
    return known->second.plan;
  }
  // Drops the plan whose last use is longest ago where there are too many. The key is new.
  void add(Key key, std::shared_ptr<Plan> plan) {
    EDDY_DCHECK(plan != nullptr) << "null says that there is no plan";
    const auto [made, is_new] = plans_.try_emplace(std::move(key));
    EDDY_DCHECK(is_new) << "a shape is planned twice";
    by_use_.push_front(&made->first);
    made->second = {std::move(plan), by_use_.begin()};
    if (plans_.size() <= max_plans_) return;
    EDDY_DCHECK(by_use_.size() == plans_.size()) << by_use_.size() << " uses, " << plans_.size();
    const auto oldest = plans_.find(*by_use_.back());
    by_use_.pop_back();
    plans_.erase(oldest);
  }
  void clear() {
    by_use_.clear();
    plans_.clear();
  }
  size_t size() const { return plans_.size(); }

 private:
  using ByUse = std::list<const Key*>;  // of plans_; the latest first
  struct Entry {
    std::shared_ptr<Plan> plan;
    typename ByUse::iterator use;
  };
  const size_t max_plans_;
  std::map<Key, Entry> plans_;
  ByUse by_use_;
};

}  // namespace eddy
