// idle_moves: nodes of a device that move no element become views.
//
//   Transpose, Slice, Gather, Split whose result lies as its input does  →  Reshape
//
// As exporters write them: an axis of one sample that changes its place, an entry of an axis that
// has one, a part that is the whole. Each is a launch on a device, a Reshape is none. Of known
// sizes.
//
// Takes the graph over; a graph without such nodes comes back as it is. `value_devices` as in
// place.h. Errors: those of building the graph. Cost: O(nodes).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct IdleMoves {
  Graph graph;
  std::vector<uint32_t> value_devices;
  size_t num_views = 0;  // that were moves
};

Result<IdleMoves> idle_moves(Graph graph, const OpTable& ops, std::vector<uint32_t> value_devices,
                             const std::string& device);

}  // namespace eddy
