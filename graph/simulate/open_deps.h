// OpenDeps: the dependencies of a batch of edits of which one end does not exist yet.
//
// Threads: as a container. Cost: of() logarithmic, and what it returns.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace eddy {

class OpenDeps {
 public:
  using Dep = std::pair<int64_t, int64_t>;  // from, to: task ids

  bool is_empty() const { return deps_.empty(); }
  const Dep& first() const { return *deps_.begin(); }
  void add(const Dep& dep) {
    deps_.insert(dep);
    reversed_.emplace(dep.second, dep.first);
  }
  // Whether it was there.
  bool remove(const Dep& dep) {
    reversed_.erase({dep.second, dep.first});
    return deps_.erase(dep) > 0;
  }
  // The dependencies that the task is an end of.
  std::vector<Dep> of(int64_t id) const {
    constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
    std::vector<Dep> found;
    for (auto it = reversed_.lower_bound({id, kLeast}); it != reversed_.end() && it->first == id;
         ++it) {
      found.emplace_back(it->second, id);
    }
    for (auto it = deps_.lower_bound({id, kLeast}); it != deps_.end() && it->first == id; ++it) {
      found.push_back(*it);
    }
    return found;
  }
  void clear() {
    deps_.clear();
    reversed_.clear();
  }

 private:
  std::set<Dep> deps_;
  std::set<Dep> reversed_;  // to, from
};

}  // namespace eddy
