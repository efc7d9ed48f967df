// PackedConstants: what kernels make of constants when they are bound, made once for each constant
// and layout however many nodes read it: both branches of an If, a body that is inlined twice.
//
// A packing depends on the constant's bytes, found by their address (equal constants share one,
// see graph/compile/constant_pool.h), and on its layout: the type made and a text that names
// everything else it depends on ("288x1024 by columns").
//
// Packings that are plain bytes are made by memory(): they may come from a store, which holds what
// an earlier process has packed (runtime/api/saved_plan.h), and are shown to it when they are new.
// A store's bytes come from a file: they have the size asked for and the alignment, and what else a
// kernel relies on it checks itself (`is_usable`). Kernels take nothing in them for an index.
//
// Ownership: the kernels' states hold the packings; this only refers to them while a program is
// bound.
// Threads: one at a time. Cost: O(log) a call.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <typeindex>
#include <utility>

namespace eddy {

// Bytes aligned to 64, of the heap or of a file that stays mapped. Null: none.
using PackedMemory = std::shared_ptr<const std::byte>;

// May be empty functions.
struct PackingStore {
  // Null: it has none of that size.
  std::function<PackedMemory(const void* constant, std::string_view layout, size_t size_bytes)>
      find_or_null = {};
  std::function<void(const void* constant, std::string_view layout, PackedMemory made,
                     size_t size_bytes)>
      add = {};
};

class PackedConstants {
 public:
  static constexpr size_t kAlignment = 64;

  PackedConstants() = default;
  explicit PackedConstants(PackingStore store) : store_(std::move(store)) {}

  // `make` returns a std::shared_ptr<const T>; null, where it failed, is not kept.
  template <typename T, typename Make>
  std::shared_ptr<const T> get(const void* bytes, std::string layout, Make make) {
    Key key(bytes, typeid(T), std::move(layout));
    const auto known = packings_.find(key);
    if (known != packings_.end()) return std::static_pointer_cast<const T>(known->second);
    std::shared_ptr<const T> made = make();
    if (made != nullptr) packings_.emplace(std::move(key), made);
    return made;
  }
  size_t size() const { return packings_.size(); }

  // Bytes that `fill` has packed of the constant, now or in an earlier process; the layout's text
  // names the kind of packing, too. Null: out of memory.
  PackedMemory memory(const void* constant, std::string_view layout, size_t size_bytes,
                      const std::function<void(std::byte* to)>& fill,
                      const std::function<bool(const std::byte* bytes)>& is_usable = {}) const;

 private:
  using Key = std::tuple<const void*, std::type_index, std::string>;
  std::map<Key, std::shared_ptr<const void>> packings_;
  PackingStore store_ = {};
};

}  // namespace eddy
