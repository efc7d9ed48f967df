// Topological orders: every node after all of its parents.
//
// topological_order is the plain one: the ids' own order where that is topological already,
// else Kahn's with a queue (sources by id, then as their last parent is visited).
//
// short_edge_order keeps parents and children close to each other, so that passes that sweep
// over positions (transitive reduction) touch little memory at a time. It takes the ids' own
// order when that is topological and shorter than the computed one. The computed one gives a
// sink its depth and any other node the place just before its first child: neither early sinks
// nor late sources end up far from their neighbours.
//
// Cost: O(nodes + edges). Deterministic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/analysis/dag.h"

namespace eddy {

std::vector<uint32_t> topological_order(const Dag& dag);

std::vector<uint32_t> short_edge_order(const Dag& dag);

// position_of(order)[order[i]] == i; `order` is a permutation.
std::vector<uint32_t> position_of(std::span<const uint32_t> order);

// Whether `order` is a permutation of the nodes that has every edge pointing forward.
bool is_topological(const Dag& dag, std::span<const uint32_t> order);

}  // namespace eddy
