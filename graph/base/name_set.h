// NameSet: names that are taken, of which there may be millions: 64 bits each, and no text.
//
//   if (names.insert("Add_3")) ...   // it was free
//
// Contract: a name that was inserted is taken. One that was not is taken, too, where its hash is
// another's (beside 10^6 names one in 10^13); so it is for callers that can take another name.
// Threads: one. Cost: insert O(1), one cache line; 16 to 32 bytes a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace eddy {

class NameSet {
 public:
  // False: it is taken.
  bool insert(std::string_view name) {
    if (2 * (count_ + 1) > places_.size()) grow();
    if (!put(hash_of(name))) return false;
    ++count_;
    return true;
  }
  bool has(std::string_view name) const {
    if (places_.empty()) return false;
    const uint64_t hash = hash_of(name);
    const size_t mask = places_.size() - 1;
    for (size_t at = hash & mask; places_[at] != kFree; at = (at + 1) & mask) {
      if (places_[at] == hash) return true;
    }
    return false;
  }
  size_t size() const { return count_; }

 private:
  static constexpr uint64_t kFree = 0;

  static uint64_t hash_of(std::string_view name) {
    const uint64_t hash = std::hash<std::string_view>()(name);
    return hash == kFree ? 1 : hash;
  }
  bool put(uint64_t hash) {
    const size_t mask = places_.size() - 1;
    size_t at = hash & mask;
    for (; places_[at] != kFree; at = (at + 1) & mask) {
      if (places_[at] == hash) return false;
    }
    places_[at] = hash;
    return true;
  }
  void grow() {
    std::vector<uint64_t> old(places_.empty() ? 8 : 2 * places_.size(), kFree);
    old.swap(places_);
    for (const uint64_t hash : old) {
      if (hash != kFree) put(hash);
    }
  }

  std::vector<uint64_t> places_;  // a power of two
  size_t count_ = 0;
};

}  // namespace eddy
