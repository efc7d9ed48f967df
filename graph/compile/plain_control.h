// plain_control: the same graph with control flow that ONNX has, for other runtimes.
//
//   while    `before` only forwards what is carried, so that it is written as a Loop: before the
//            loop stands a copy of `before`, and another one behind `after`
//   case-of  a chain of branches on a bool, each written as an If
//
//   while (p, F) = before(C):           (p, F) = before(C)
//     C = after(F)               ──>    while p:  C = after(F);  (p, F) = before(C)
//
// Nodes of ONNX's domain get one opset, where there is one in which all mean what they do.
// `before` runs as often as it did, with the same iteration numbers, so results have the same bits.
// A selector that is out of range where neither a default nor values to pass through are given is
// an error of a run; here it takes the last branch.
//
// The graph is taken over. Errors: the builder's. Cost: O(nodes x 2^d), d deep nesting in `before`.
// Threads: pure.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

Result<Graph> plain_control(Graph graph, const OpTable& ops);

}  // namespace eddy
