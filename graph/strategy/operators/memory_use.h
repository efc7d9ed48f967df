// Memory use: the bytes that each node of a topology holds under a strategy, and whether that is
// within its capacity. MemoryMeter keeps the same up to date while operators change.
//
// A node holds the outputs of its parts (all of them: training keeps activations) and its weights,
// thrice in training (with their gradients and one moment).
//
// Errors: kInvalidArgument, with the device's name, where one holds more than its capacity.
// Cost: O(parts), and that of weight_slices().
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/status.h"
#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/topology.h"

namespace eddy {

// By node of the topology.
std::vector<int64_t> memory_use(const OperatorGraph& graph, const Topology& topology,
                                const Strategy& strategy);
// What that is the sum of; it stays at the most that a number holds.
void add_bytes(int64_t& to, int64_t bytes);
void add_output_bytes(const OperatorGraph& graph, const Strategy& strategy,
                      std::vector<int64_t>& bytes);
void add_weight_bytes(const OperatorGraph& graph, const Strategy& strategy,
                      std::vector<int64_t>& bytes);
Status check_capacity(const std::vector<int64_t>& bytes, const Topology& topology);
Status check_memory(const OperatorGraph& graph, const Topology& topology, const Strategy& strategy);

}  // namespace eddy
