// Short edge order: a topological order that keeps parents and children close to each other, so
// that passes that sweep over positions (transitive reduction) touch little memory at a time.
//
// It takes the ids' own order when that is topological and shorter than the computed one. The
// computed one gives a sink its depth and any other node the place just before its first child:
// neither early sinks nor late sources end up far from their neighbours.
//
// Cost: O(nodes + edges). Deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/analysis/dag.h"

namespace eddy {

std::vector<uint32_t> short_edge_order(const Dag& dag);

}  // namespace eddy
