#include "graph/strategy/operators/memory_use.h"

#include <string>

#include "graph/base/check.h"
#include "graph/strategy/operators/weight_slices.h"

namespace eddy {

// Stays at the most that a number holds.
void add_bytes(int64_t& to, int64_t bytes) {
  if (__builtin_add_overflow(to, bytes, &to)) to = INT64_MAX;
}

void add_output_bytes(const OperatorGraph& graph, const Strategy& strategy,
                      std::vector<int64_t>& bytes) {
  EDDY_CHECK(strategy.size() == graph.operators.size())
      << strategy.size() << " configurations for " << graph.operators.size() << " operators";
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    int64_t tile_bytes = graph.bytes_per_element;
    for (const int64_t dim : tile_of(graph.operators[i], strategy[i])) tile_bytes *= dim;
    for (const uint32_t device : strategy[i].devices) add_bytes(bytes[device], tile_bytes);
  }
}

void add_weight_bytes(const OperatorGraph& graph, const Strategy& strategy,
                      std::vector<int64_t>& bytes) {
  const int64_t copies = graph.is_training ? 3 : 1;
  for (const std::vector<uint32_t>& group : weight_groups(graph)) {
    for (const WeightSlice& slice : weight_slices(graph, strategy, group)) {
      for (const SliceShard& shard : slice.shards) {
        add_bytes(bytes[shard.device], copies * slice.elements * graph.bytes_per_element);
      }
    }
  }
}

std::vector<int64_t> memory_use(const OperatorGraph& graph, const Topology& topology,
                                const Strategy& strategy) {
  std::vector<int64_t> bytes(topology.num_nodes(), 0);
  add_output_bytes(graph, strategy, bytes);
  add_weight_bytes(graph, strategy, bytes);
  return bytes;
}

Status check_capacity(const std::vector<int64_t>& bytes, const Topology& topology) {
  EDDY_CHECK(bytes.size() >= topology.num_nodes()) << "bytes of " << bytes.size() << " devices";
  for (uint32_t i = 0; i < topology.num_nodes(); ++i) {
    const DeviceSpec& device = topology.node(i);
    if (device.memory_bytes == 0 || bytes[i] <= device.memory_bytes) continue;
    return invalid_argument("device '" + device.name + "' would hold " + std::to_string(bytes[i]) +
                            " bytes, its limit is " + std::to_string(device.memory_bytes) +
                            "; spread the operators over more devices");
  }
  return Status::ok();
}

Status check_memory(const OperatorGraph& graph, const Topology& topology,
                    const Strategy& strategy) {
  return check_capacity(memory_use(graph, topology, strategy), topology);
}

}  // namespace eddy
