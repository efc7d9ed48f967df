// Id<Tag>: a dense, typed index. A NodeId cannot be passed where a ValueId is required.
//
// Ids are positions in a vector of the object that made them, starting at 0; the default value
// is "none" and must not be used as an index.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "graph/base/check.h"

namespace eddy {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(uint32_t index) : index_(index) {}

  constexpr bool is_none() const { return index_ == kNone; }
  constexpr uint32_t index() const { return index_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t index_ = kNone;
};

static_assert(sizeof(Id<void>) == sizeof(uint32_t), "lists of ids are lists of indices");
static_assert(Id<void>().is_none() && !Id<void>(0).is_none());

}  // namespace eddy

template <typename Tag>
struct std::hash<eddy::Id<Tag>> {
  size_t operator()(eddy::Id<Tag> id) const noexcept { return id.index(); }
};
