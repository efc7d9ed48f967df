// Edge devices: which edges of E' a matching may put on which device.
//
// An edge (u, v) costs no wait if v follows u on a stream of any device that both work on. A
// matching on the pairs of slots (u, d), (v, d) counts edges as long as no edge has two pairs.
// That holds where no edge joins nodes that share several devices: all pairs are allowed, and the
// most pairs are the most edges. Else each such edge is given to one of its devices, so that a
// matching covers as many different edges as it can.
//
// That choice is a time table: edges are lessons, their ends teachers and classes with a free hour
// for each device, hours are devices. It is NP-hard from three devices on (Even, Itai, Shamir), so:
// a matching in which an edge may leave u by one device and enter v by another gives an upper
// bound; swaps along paths of two alternating devices (as in Konig's edge colouring) make its edges
// agree; where they cannot, branch and bound, for a limited number of matchings. Edges that compete
// for no slot, not even over others, are searched apart. Graphs of 2,000 nodes that are each on
// half of three devices are nearly always searched to the end, most of those on half of eight are
// not: they end a few waits above the bound.
//
// Contract: `reduced` is the transitive reduction. The same for any order of work: deterministic.
// Where `above_fewest` is 0 the number of edges covered does not depend on how nodes are named.
// Cost: without shared devices O(edges * log), else that of one matching and its swaps, at most
// kMaxMatchings of them, and fewer on large graphs.
// Source: Even, Itai, Shamir, "On the complexity of timetable and multicommodity flow problems",
// 1976.
#pragma once

#include <cstdint>

#include "graph/analysis/dag.h"
#include "graph/analysis/matching.h"
#include "graph/schedule/streams/slots.h"

namespace eddy {

struct EdgeDevices {
  // One row for each slot: the slots on the same device at the end of an edge; of an edge between
  // nodes that share several devices, one.
  Bipartite pairs;
  uint32_t num_shared = 0;    // edges whose ends share several devices
  uint32_t above_fewest = 0;  // a maximum matching leaves at most so many edges more than it must
};

inline constexpr uint32_t kMaxMatchings = 500;  // for edges that compete for slots

EdgeDevices choose_edge_devices(const Dag& reduced, const Slots& slots,
                                uint32_t max_matchings = kMaxMatchings);

}  // namespace eddy
