// coalesce: which names of fixed shape share one address, so that handing a value on moves nothing.
//
// Loops and cases hand values on: initial → parameter, next → parameter, forwarded → output, branch
// result → output. Seen as code these are copies out of single-assignment form, and most of them
// go: two names whose lives are apart (name_lives.h) join one class, and a class has one address.
// An edge between classes stays a copy.
//
// A loop's next value that is made while the parameter is still used can't join it. Where one node
// right inside the loop makes it, both form a class of two addresses that alternate with the
// parity of that loop's iterations: what is written as next is the parameter of the next iteration
// where it stands. The same is done where the lives are apart but another stream still uses the
// last next value: the next iteration's writer need not wait for it.
//
//   turn      stands at, of addresses A, B, in iteration i of the class's loop
//   kFirst    A
//   kCurrent  A, B, A, …  the parameter, and the loop's outputs that it becomes
//   kNext     B, A, B, …  the next value
//
// Contract: roots and edges as storages.h finds them. Deterministic.
// Cost: O(edges * kMaxClassNames^2 * uses). Source: Boissinot et al. 2009, "Revisiting Out-of-SSA
// Translation"; copy insertion of XLA.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/aliases.h"
#include "graph/ir/graph.h"
#include "graph/schedule/memory/name_lives.h"

namespace eddy {

inline constexpr size_t kMaxClassNames = 64;

enum class Turn : uint8_t { kFirst, kCurrent, kNext };

// `to` is handed `from`; both are roots.
struct NameEdge {
  ValueId to;
  ValueId from;
  AliasKind kind;
  uint32_t depth;  // of the region in which the loop or case stands
};

struct NameClasses {
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Class {
    std::vector<ValueId> names;
    NodeId loop;  // none: one address
  };

  std::vector<Class> all;         // some without names: they have joined others
  std::vector<uint32_t> of_root;  // by ValueId; kNone: not planned
  std::vector<Turn> turns;        // by ValueId, of roots

  // Whether the edge moves bytes; `to` is planned.
  bool is_copy(const NameEdge& edge) const;
};

// `is_planned`: by ValueId, of roots.
NameClasses coalesce(const Graph& graph, const NameLives& lives, std::vector<NameEdge> edges,
                     const std::vector<bool>& is_planned);

}  // namespace eddy
