// Assignment by matching: the fewest waits, then few streams.
//
// Nimble's Algorithm 1: a maximum matching M on the transitive reduction E' gives each node at most
// one successor on its stream; |E'| - |M| waits are the minimum over all assignments that put no
// two unrelated nodes on one stream. Its |V| - |M| streams grow with the graph's depth, so streams
// are then saved without touching the waits:
//   exact     maximum-weight matching on the closure, (1, 1) for pairs in E' and (0, 1) for others,
//             compared lexicographically: the fewest streams among all assignments with the fewest
//             waits (the README has the argument).
//   joined    the chains of M are joined, a chain's end to a chain's start that it reaches, by a
//             maximum matching of ends and starts.
//   greedily  the same in issue order, first fit, where reachability is too large to list.
//
// Nodes on several devices have a place on a stream of each. An edge that joins two that share
// several devices is first given to one of them (edge_devices.h, which says where the waits are
// then still the fewest); the streams are the fewest for this choice.
//
// Contract: as stream_assignment.h; `reduced` is the transitive reduction of the graph. Where a cap
// is reached chains are placed on the streams there are, and the minimum does not hold.
// Cost: exact O(nodes * edges / 64) and nodes^2 bits and places * nodes tight pairs (2,000 nodes
// that are all on four devices take 0.3 s and 43 MB, on two 0.06 s); else near linear.
// Source: Nimble, section 4.2, appendix A (theorem 3); Hungarian duality for the second pass.
#pragma once

#include <cstdint>
#include <span>

#include "graph/analysis/dag.h"
#include "graph/schedule/streams/stream_assignment.h"

namespace eddy {

struct MatchingAssignment {
  StreamAssignment streams;
  uint32_t matching_size = 0;  // |M|
  uint32_t above_fewest = 0;   // |E'| - |M| is at most so far above the fewest waits
};

MatchingAssignment assign_by_matching(const Dag& reduced, std::span<const uint32_t> issue_order,
                                      const StreamOptions& options);

// |M| alone: edges of E' whose ends follow each other on a stream of a device that they share.
uint32_t matching_size(const Dag& reduced, const StreamOptions& options);

}  // namespace eddy
