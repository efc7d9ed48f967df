// NameMap: values by name, for names that stay where they are. It forgets none.
//
// Contract: a name's bytes outlive the map. Pointers hold until the next emplace().
// Threads: one that changes it. Cost: O(1), two cache lines; no memory of its own for a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy {

template <typename T>
class NameMap {
 public:
  // The name's value, and whether it is this one.
  std::pair<T*, bool> emplace(std::string_view name, T value) {
    if (2 * (entries_.size() + 1) > places_.size()) grow(2 * places_.size());
    const uint64_t hash = std::hash<std::string_view>()(name);
    uint32_t& place = places_[find(hash, name)];
    if (place != kFree) return {&entries_[place].value, false};
    place = static_cast<uint32_t>(entries_.size());
    entries_.push_back({name, hash, std::move(value)});
    return {&entries_.back().value, true};
  }
  const T* find_or_null(std::string_view name) const {
    if (entries_.empty()) return nullptr;
    const uint32_t place = places_[find(std::hash<std::string_view>()(name), name)];
    return place == kFree ? nullptr : &entries_[place].value;
  }
  bool contains(std::string_view name) const { return find_or_null(name) != nullptr; }
  size_t size() const { return entries_.size(); }
  void reserve(size_t count) {
    entries_.reserve(count);
    if (2 * (count + 1) > places_.size()) grow(2 * (count + 1));
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Entry {
    std::string_view name;
    uint64_t hash;
    T value;
  };

  // Its place, or the one that it would get.
  size_t find(uint64_t hash, std::string_view name) const {
    const size_t mask = places_.size() - 1;
    size_t at = hash & mask;
    for (; places_[at] != kFree; at = (at + 1) & mask) {
      const Entry& entry = entries_[places_[at]];
      if (entry.hash == hash && entry.name == name) break;
    }
    return at;
  }
  void grow(size_t least) {
    size_t size = 8;
    while (size < least) size *= 2;
    places_.assign(size, kFree);
    for (uint32_t i = 0; i < entries_.size(); ++i) {
      size_t at = entries_[i].hash & (size - 1);
      while (places_[at] != kFree) at = (at + 1) & (size - 1);
      places_[at] = i;
    }
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> places_;  // of entries; a power of two
};

}  // namespace eddy
