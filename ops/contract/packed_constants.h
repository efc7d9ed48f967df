// PackedConstants: what kernels make of constants when they are bound, made once for each constant
// and layout however many nodes read it: both branches of an If, a body that is inlined twice.
//
// A packing depends on the constant's bytes, found by their address (equal constants share one,
// see graph/compile/constant_pool.h), and on its layout: the type made and a text that names
// everything else it depends on ("288x1024 by columns").
//
// Ownership: the kernels' states hold the packings; this only refers to them while a program is
// bound.
// Threads: one at a time. Cost: O(log) a call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <typeindex>
#include <utility>

namespace eddy {

class PackedConstants {
 public:
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

 private:
  using Key = std::tuple<const void*, std::type_index, std::string>;
  std::map<Key, std::shared_ptr<const void>> packings_;
};

}  // namespace eddy
