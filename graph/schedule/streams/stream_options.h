// StreamOptions and StreamAssignment: what each way of assigning streams is given, and what it
// gives (stream_assignment.h has the contract).
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace eddy
