// find_trip_rule: what decides how often a loop runs, where that is settled when it is entered.
//
// Three ways of saying so are known: a predicate that is constant; a carried one that the body
// passes on or makes true (what ONNX's loops with a trip count have); and iteration < bound with a
// bound from outside the loop. Values that are only renamed or given another shape on the way stay
// what they are. The loop's trip limit holds as well. Everything else is decided by data, and found
// out by running.
//
// Cost: O(names on the predicate's way).
#pragma once

#include "graph/ir/graph.h"

namespace eddy {

struct TripRule {
  bool is_settled = false;
  // One bool, read once the carried values have their first ones: false: no iteration. Or none.
  ValueId first;
  // One int64 from outside: no more iterations than that. Or none.
  ValueId bound;
};

TripRule find_trip_rule(const Graph& graph, NodeId loop);

}  // namespace eddy
