// exchange_tails: gives a region a stream that begins with a source and ends with a sink, where two
// streams only have to exchange their tails for it.
//
// A region's entry waits for nothing on its stream 0, nor its exit (boundary_waits.h), so a stream
// from a source to a sink spares a wait at each. A matching does not count that: among those with
// the fewest waits and streams it gives one in which perhaps only the chain a .. b begins with a
// source and only c .. d ends with a sink. Where a node of the first may be followed by one of the
// second, and the other way round, and both pairs are as good as those they replace (edges of the
// reduction save a wait, others none), the tails change places: waits between nodes and the number
// of streams stay what they are, and the frame needs one wait less.
//
// One exchange is tried for, in order of streams and nodes; that finds one wherever there is any
// with graphs of up to six nodes, and nearly always with larger ones. It is not sought in graphs of
// more than StreamOptions::exact_nodes, of which the closure would be needed.
//
// Contract: no two unrelated nodes share a stream, and each node is on one (no cap was reached, no
// node is on several devices). Only streams of `device` count. Deterministic.
// Cost: O(nodes^2 + nodes * edges / 64) where no stream goes from a source to a sink.
#pragma once

#include <cstdint>
#include <span>

#include "graph/analysis/dag.h"
#include "graph/schedule/streams/stream_assignment.h"

namespace eddy {

// True when tails were exchanged.
bool exchange_tails(const Dag& dag, std::span<const uint32_t> issue_order, uint32_t device,
                    StreamAssignment& assignment);

}  // namespace eddy
