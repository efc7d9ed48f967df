// tie_channels: a graph whose communication follows one order on each channel, however it is
// planned.
//
// In each region, operations of one channel (of Send and Recv: of one source and target) are tied
// in the order of the region's nodes, which is the same on every rank that has the graph: a result
// of the former becomes an unread input of the next. A loop or case stands in the chains of all
// channels that it holds. For each of them a loop carries a flag more, so that iterations follow
// each other where they overlap, and a case results in one more.
//
//   a = AllReduce(x); b = AllReduce(y)   becomes   a = AllReduce(x); b = AllReduce(y, a)
//
// A tie waits for the former operation to complete, not only to start.
//
// Names of nodes stay. Ownership: the source's bytes are taken over. Errors: the builder's.
// Cost: O(nodes + chains of each region). Run it behind all other passes: they may drop or join
// what it adds no less than what was there.
#pragma once

#include <functional>
#include <span>

#include "graph/base/status.h"
#include "graph/ir/builder.h"
#include "graph/ranks/communication.h"

namespace eddy {

// What tie_channels adds, injected: graph/ names no operators.
struct TieRules {
  // An exec node's attributes, as far as they are known where the number of ranks is.
  std::function<Attributes(const Node&)> attributes;
  // A bool scalar that is there once all of `after` is; communicates with no rank.
  std::function<Value(GraphBuilder&, std::span<const Value> after)> join;
};

Result<Graph> tie_channels(Graph&& graph, const OpTable& ops, const RankRules& rules,
                           const TieRules& ties);

}  // namespace eddy
