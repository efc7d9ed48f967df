// cost_model: what nodes cost on the CPU, to decide whether streams pay and, where requested, to
// rank.
//
// An exec node costs the table's measurement for its operator, types and device; where the table
// lacks it, or its shapes are not fixed, an estimate: a launch, its floating-point work and the
// bytes it moves; unknown dimensions count as kGuessedDim. A loop costs kGuessedTrips rounds of its
// body, or as many as the table saw on average, a case-of its dearest branch; no node costs more
// than kMostNs, so that nested
// loops never add up to infinity. Estimates are good within a factor of a few: enough to
// distinguish nanoseconds from milliseconds, not to predict a run (that is the simulator's task).
//
// Threads: pure. Cost: O(nodes + uses), with a table one look-up a node more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/costs/cost_table.h"

namespace eddy {

inline constexpr double kLaunchNs = 20;
inline constexpr double kGuessedTrips = 1000;
inline constexpr int64_t kGuessedDim = 64;

inline constexpr double kMostNs = 1e18;

// The costs by NodeId, each finite and >= 0. From the table it uses the entries of device "cpu".
std::vector<double> estimate_costs_ns(const Graph& graph,
                                      const CostTable* measured_or_null = nullptr);

// The table's entry for an exec node, of device "cpu"; null: there is none.
const MeasuredCost* measured_cost_or_null(const CostTable& table, const Graph& graph,
                                          const Node& node);

// What an exec node has to do, by its types alone; unknown dimensions count as kGuessedDim.
struct NodeLoad {
  double flops = 0;
  double moved_bytes = 0;
  double num_outputs = 0;  // elements
};
NodeLoad exec_load(const Graph& graph, const Node& node);

// Which of a graph's exec nodes a table holds, over all regions.
struct CostCoverage {
  uint32_t num_measured = 0;
  uint32_t num_estimated = 0;
  std::vector<NodeId> missing;  // of those estimated, the first of each operator and types

  // For people: "3 of 7 nodes are not in the table, so estimates stand for them: ..."; empty
  // when nothing is estimated. One line, of a few names at most.
  std::string text(const Graph& graph) const;
};
CostCoverage cost_coverage(const Graph& graph, const CostTable& measured);

}  // namespace eddy
