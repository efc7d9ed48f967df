// Chain placement: puts a DAG's nodes on streams, one chain of descendants after the other.
//
// Visit the nodes in issue order. A node without a stream takes the lowest-numbered recyclable
// stream (one whose last node is an ancestor, so it has surely ended), preferring one that has
// run the same command; else a new stream. From there the stream is extended again and again:
//   assign_by_rank   along the highest-ranked child that has no stream yet; ties prefer a child
//                    whose command the stream has run, then the lower id. This is NNC's
//                    documented rule: N1 -> (N2, N3) -> N4 gives N1, N2, N4 one stream.
//   assign_chains    along successors chosen beforehand.
//
// Without a cap every stream is a chain of ancestors, so the assignment orders nothing new. At
// the cap a node that finds no recyclable stream joins the one of its device that is estimated
// to be free first.
//
// Contract: as stream_assignment.h. `successor_of_slot` names for each slot (slots.h) a
// descendant's slot on the same device, each at most once, or Slots::kNoSlot.
// Cost: O(nodes + edges) set operations, see stream_sets.h. Nodes on many devices hold larger sets:
// 10^5 nodes with 4 * 10^5 short edges take 0.06 s on one device, 0.5 s on 10^3, 1.3 s on 10^4.
// Source: NNC, "Static Schedule".
#pragma once

#include <cstdint>
#include <span>

#include "graph/analysis/dag.h"
#include "graph/schedule/streams/stream_options.h"

namespace eddy {

StreamAssignment assign_by_rank(const Dag& dag, std::span<const uint32_t> issue_order,
                                const StreamOptions& options);

StreamAssignment assign_chains(const Dag& dag, std::span<const uint32_t> issue_order,
                               const StreamOptions& options,
                               std::span<const uint32_t> successor_of_slot);

}  // namespace eddy
