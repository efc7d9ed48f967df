// cost_model: a rough estimate of what nodes cost on the CPU, to decide whether streams pay.
//
// An exec node costs a launch, its floating-point work and the bytes it moves; unknown
// dimensions count as kGuessedDim. A loop costs kGuessedTrips rounds of its body, a case-of its
// dearest branch. Good within a factor of a few: enough to tell nanoseconds from milliseconds,
// not to predict a run (that is the simulator's task).
#pragma once

#include <vector>

#include "graph/ir/graph.h"

namespace eddy {

inline constexpr double kLaunchNs = 20;
inline constexpr double kGuessedTrips = 1000;
inline constexpr int64_t kGuessedDim = 64;

// By NodeId.
std::vector<double> estimate_costs_ns(const Graph& graph);

}  // namespace eddy
