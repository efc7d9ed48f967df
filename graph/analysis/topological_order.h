// Topological orders: every node after all of its parents.
//
// topological_order gives the ids' own order where that is topological already, else Kahn's with a
// queue (sources by id, then as their last parent is visited).
//
// Cost: O(nodes + edges). Deterministic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/analysis/dag.h"

namespace eddy {

std::vector<uint32_t> topological_order(const Dag& dag);

// Whether every edge leads from a lower id to a higher one.
bool ids_are_topological(const Dag& dag);

// position_of(order)[order[i]] == i; `order` is a permutation.
std::vector<uint32_t> position_of(std::span<const uint32_t> order);

// Whether `order` is a permutation of the nodes that has every edge pointing forward.
bool is_topological(const Dag& dag, std::span<const uint32_t> order);

}  // namespace eddy
