#include "graph/schedule/streams/stream_options.h"

#include <algorithm>

namespace eddy {

std::span<const NodeStream> StreamAssignment::further_streams_of(uint32_t node) const {
  const auto by_node = [](const NodeStream& a, uint32_t n) { return a.node < n; };
  const auto first = std::lower_bound(further.begin(), further.end(), node, by_node);
  const auto last = std::lower_bound(first, further.end(), node + 1, by_node);
  return {first, last};
}

const char* streams_notice(FewestStreams fewest) {
  switch (fewest) {
    case FewestStreams::kExact:
      return "matching: fewest streams among assignments with the fewest waits between nodes, "
             "exactly";
    case FewestStreams::kForChosenDevices:
      return "matching: fewest waits between nodes; fewest streams for the devices chosen where "
             "two "
             "nodes share several, not proved fewest";
    case FewestStreams::kJoined:
      return "matching: fewest waits between nodes; streams saved by joining chains, not proved "
             "fewest (up to 2,000 nodes on 8,000 places of devices they are)";
    case FewestStreams::kGreedily:
      return "matching: fewest waits between nodes; streams saved by joining chains first fit, not "
             "proved fewest (up to 2,000 nodes on 8,000 places of devices they are)";
    case FewestStreams::kCapped:
      return "matching: under a cap that is reached the fewest waits hold for the assignment only; "
             "rank may need fewer";
  }
  return "";
}

}  // namespace eddy
