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

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/analysis/dag.h"

namespace eddy {

enum class AssignPolicy { kRank, kMatching, kSerial };

struct NodeDevice {
  uint32_t node;
  uint32_t device;
  auto operator<=>(const NodeDevice&) const = default;
};

struct NodeStream {
  uint32_t node;
  uint32_t stream;
  auto operator<=>(const NodeStream&) const = default;
};

struct StreamOptions {
  AssignPolicy policy = AssignPolicy::kRank;
  // For each device; 0 means no cap.
  uint32_t max_streams = 0;
  // Rank by cost instead of by number of nodes: finite, >= 0.
  std::span<const double> costs = {};
  // Which command a node runs; nodes with equal commands like to share a stream.
  std::span<const uint32_t> commands = {};
  // The device of each node, and, sorted, the other devices of nodes that have several.
  std::span<const uint32_t> devices = {};
  std::span<const NodeDevice> further_devices = {};
  // `matching` finds the fewest streams exactly up to this many nodes (time and memory are
  // quadratic), as long as they have no more than kExactPlaces places on devices, a node on three
  // devices having three.
  uint32_t exact_nodes = 2000;
};
inline constexpr uint32_t kExactPlaces = 8000;

// How `matching` saved streams: fewest; fewest once edges between nodes that share several devices
// were given to one each; or by joining chains, where ends reach starts too often to list first
// fit; or a cap put unrelated nodes on one stream. The better come first.
enum class FewestStreams : uint8_t { kExact, kForChosenDevices, kJoined, kGreedily, kCapped };
// One line for people.
const char* streams_notice(FewestStreams fewest);

struct StreamAssignment {
  std::vector<uint32_t> stream_of_node;  // on the node's (first) device
  uint32_t num_streams = 0;
  std::vector<uint32_t> device_of_stream;
  // The other streams of nodes on several devices, by node.
  std::vector<NodeStream> further;
  FewestStreams fewest = FewestStreams::kExact;  // of `matching`; of others, whether it is capped

  std::span<const NodeStream> further_streams_of(uint32_t node) const;

  // Calls visit(stream) for each stream of the node, the first device's first.
  template <typename Visit>
  void for_each_stream_of(uint32_t node, Visit visit) const {
    visit(stream_of_node[node]);
    if (further.empty()) return;
    for (const NodeStream& more : further_streams_of(node)) visit(more.stream);
  }

  bool operator==(const StreamAssignment&) const = default;
};

StreamAssignment assign_streams(const Dag& dag, std::span<const uint32_t> issue_order,
                                const StreamOptions& options);

}  // namespace eddy
