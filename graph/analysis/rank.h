// Rank: the length of the longest chain that follows a node; a sink has rank 0.
//
// Length counts the nodes that follow (unit_ranks) or adds up their costs (cost_ranks). Depth is
// the mirror image: the longest chain before a node, in nodes or costs; a source has depth 0.
// Every edge lowers the unit rank by at least 1 and never raises the cost rank.
//
// Contract: `order` is a topological order of `dag`; `costs` holds one finite number >= 0 for
// each node, in any one unit, and ranks come in that unit.
// Cost: O(nodes + edges).
// Source: NNC, "Static Schedule" ("The rank is the length of the longest chain follows the
// current node").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/analysis/dag.h"

namespace eddy {

std::vector<uint32_t> unit_ranks(const Dag& dag, std::span<const uint32_t> order);
std::vector<double> cost_ranks(const Dag& dag, std::span<const uint32_t> order,
                               std::span<const double> costs);

std::vector<uint32_t> unit_depths(const Dag& dag, std::span<const uint32_t> order);
std::vector<double> cost_depths(const Dag& dag, std::span<const uint32_t> order,
                                std::span<const double> costs);

}  // namespace eddy
