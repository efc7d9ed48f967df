// MemoryMeter: the bytes that each device holds under a strategy, kept up to date while single
// operators change (operator_graph.h's memory_use() says the same from scratch).
//
// Where no device has a limit the meter does nothing and always fits.
// Threads: none. Cost: change() O(parts of the operator and of those that share its weights).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/simulate/operator_graph.h"
#include "graph/simulate/topology.h"

namespace eddy {

class MemoryMeter {
 public:
  // Borrows both.
  MemoryMeter(const OperatorGraph& graph, const Topology& topology);

  void reset(const Strategy& strategy);
  // The operator's configuration in `strategy` is to be replaced: call before, then after().
  void before(const Strategy& strategy, uint32_t op) { count(strategy, op, -1); }
  void after(const Strategy& strategy, uint32_t op) { count(strategy, op, 1); }
  bool fits() const;
  bool is_limited() const { return is_limited_; }

 private:
  void count(const Strategy& strategy, uint32_t op, int64_t sign);

  const OperatorGraph& graph_;
  const Topology& topology_;
  bool is_limited_ = false;
  std::vector<std::vector<uint32_t>> groups_;
  std::vector<int64_t> bytes_;
};

}  // namespace eddy
