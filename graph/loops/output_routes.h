// find_output_routes: which nodes may write an output of the graph straight into memory that the
// caller has bound for it.
//
// An output is followed back by its names: through views, branches' results (every branch),
// forwarded values of loops, and what a loop carries. Where that ends at a node that writes the
// value, or at a loop that stacks it, every value made there is one that the output may become;
// which of a loop's iterations makes the very one is known once the number of iterations is.
//
// Not followed: values captured from around a branch or loop (made whether it is wanted or not),
// initial values of loops, what operators make by themselves (sequences, optionals) and what may
// grow where it stands. Such outputs are copied once, when the run is done.
//
// Cost: O(names) for each output.
#pragma once

#include <vector>

#include "graph/ir/graph.h"

namespace eddy {

// A loop on the way. Of `n` iterations, `n - num_carried` makes the output (`n` itself: `before` of
// the test that ends the loop).
struct OutputTurn {
  NodeId loop;
  NodeId node;               // right inside the loop; makes the value, or holds what does
  uint32_t num_carried = 0;  // iterations that the loop carries the value on, name by name
  ValueId parameter;         // of `before`: the last of those names; none: not carried
};

struct OutputRoute {
  ValueId made;  // by an exec node, or stacked by a loop
  // Names between `made` and the output, that one included, of which no earlier instance is read
  // any more when `made` is written.
  std::vector<ValueId> passed;
  std::vector<OutputTurn> turns;  // outermost first
};

// By output of the graph; none: it is always copied.
using OutputRoutes = std::vector<std::vector<OutputRoute>>;

OutputRoutes find_output_routes(const Graph& graph);

}  // namespace eddy
