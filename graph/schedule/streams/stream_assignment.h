// Stream assignment: which in-order queue (or queues) each node of a DAG is issued to.
//
// Policies:
//   rank      NNC's documented rule, see chain_placement.h
//   matching  Nimble's Algorithm 1 with the fewest streams, see matching_assignment.h
//   serial    one stream for each device
// The order of the nodes within a stream is always the issue order.
//
// A stream belongs to one device. A node that works on several devices is on one stream of
// each: it starts when all of them have reached it and all go on when it has ended (one joint
// launch).
//
// Contract: `issue_order` is a topological order. `max_streams` is a hard cap for each device;
// where it makes unrelated nodes share a stream, they run in issue order, so it cannot deadlock.
// Spans in the options may be empty (unit costs, no commands, everything on device 0); else they
// have one entry for each node.
// Deterministic: the same input gives the same streams.
#pragma once

#include <cstdint>
#include <span>

#include "graph/analysis/dag.h"
#include "graph/schedule/streams/stream_options.h"

namespace eddy {

StreamAssignment assign_streams(const Dag& dag, std::span<const uint32_t> issue_order,
                                const StreamOptions& options);

}  // namespace eddy
