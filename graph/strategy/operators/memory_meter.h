// MemoryMeter: the bytes that each device holds under a strategy, kept up to date while single
// operators change (memory_use() says the same from scratch).
//
// Where no device has a limit the meter does nothing and always fits. Sums are exact, whatever the
// sizes: of a limited device, since it begins within its limit.
// Threads: none. Cost: try_change() O(parts of the operators and of those that share weights).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/topology.h"

namespace eddy {

class MemoryMeter {
 public:
  // Borrows both.
  MemoryMeter(const OperatorGraph& graph, const Topology& topology);

  void reset(const Strategy& strategy);
  // The operators' configurations are to be replaced by this one: whether everything fits then.
  // keep() makes it so.
  bool try_change(const std::vector<uint32_t>& ops, const OperatorConfig& config);
  void keep();

 private:
  bool fits() const;
  using Bytes = __int128;

  void count_tiles(uint32_t op, const OperatorConfig& config, int64_t sign);
  std::vector<Bytes> weight_bytes(uint32_t group) const;

  const OperatorGraph& graph_;
  const Topology& topology_;
  bool is_limited_ = false;
  std::vector<std::vector<uint32_t>> groups_;
  Strategy strategy_;
  std::vector<Bytes> bytes_;
  std::vector<Bytes> tried_;
  std::vector<std::vector<Bytes>> weight_bytes_;  // by group and device; empty: not yet known
  // Of the last try_change().
  std::vector<uint32_t> ops_;
  OperatorConfig config_;
  std::vector<Bytes> tried_weights_;  // of its group
};

}  // namespace eddy
