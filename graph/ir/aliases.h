// Aliases: which values are names of one value.
//
// An exec node makes a value. Views, loops and branches move nothing: they give what is there
// another name, and what a name stands for may change with each iteration and each decision. Where
// a name may come from is listed by alias_sources(), one step at a time; following its steps is the
// reader's business, because readers differ in where they stop.
//
//   Only kForwarded is certain: within an iteration a parameter of `after` is the same value as the
//   result of `before` that it is named after. resolve_forwarded() follows these.
//
// Not here: memory. A name need not share the memory of what it stands for (graph/schedule).
// Contract: of a finished graph. Cost: alias_sources O(branches), resolve_forwarded O(depth).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/graph.h"

namespace eddy {

enum class AliasKind : uint8_t {
  kView,         // output 0 of a view operator: its input 0, under another shape
  kInitial,      // a carried parameter, in its loop's first iteration
  kNext,         // the same in all others: what `after` made of it
  kForwarded,    // a parameter of `after`: a result of `before`
  kLeft,         // a loop's output: that result of the last `before`
  kBranch,       // a case-of's output: a branch's result
  kPassThrough,  // the same, where no branch is chosen
};

struct AliasSource {
  ValueId value;
  AliasKind kind;
  RegionId region;  // where it is named as a source; it may be captured there from further out
};

// Empty: the value is made under this name, stacked, counted, constant, or given to the graph.
std::vector<AliasSource> alias_sources(const Graph& graph, ValueId value);

// The value that `value` is another name for within its iteration, itself for most.
ValueId resolve_forwarded(const Graph& graph, ValueId value);

// What a view operator's output 0 shows; none for all other values.
ValueId viewed(const Graph& graph, ValueId value);

// The value whose memory it is another name for: through views, too.
ValueId resolve_views(const Graph& graph, ValueId value);

// True when a result of `region` is made by a node of that region (or of `before`, for `after`), so
// that nothing reads it once the region has ended.
bool is_region_local(const Graph& graph, ValueId result, RegionId region);

// Whether it is a constant under whatever name.
inline bool is_constant(const Graph& graph, ValueId value) {
  return graph.value(resolve_forwarded(graph, value)).origin == ValueOrigin::kConstant;
}

}  // namespace eddy
