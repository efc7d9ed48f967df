// Random graphs of loops and branches, nested up to five deep, over a handful of operators that
// have no meaning but all the ways in which values share memory: views, in-place operators,
// values carried, forwarded, permuted, captured and passed through.
//
//   Make   any inputs -> float[size]           Step  two inputs, in place -> input 0's type
//   View   float[n] <-> float[1,n]             Test  any inputs -> bool
//   Two    any inputs -> float[size] twice     Keep  input 0, made by the kernel
//   Grow   two inputs, may grow input 0 -> float[?]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "graph/ir/op.h"
#include "graph/schedule/plan_graph.h"

namespace eddy {

// A table that outlives the graphs made with it.
const OpTable& nested_ops();

struct NestedGraphOptions {
  int max_depth = 5;
  uint32_t max_nodes = 60;   // about
  uint32_t num_devices = 1;  // more: each node is on a random one (nested_devices)
};

// Same seed, same graph.
Graph nested_graph(uint64_t seed, const NestedGraphOptions& options = {});

// How to plan it: every assignment, with caps and without.
PlanOptions nested_options(uint64_t seed);

// The names of that many devices, in the plan's form; and each value where its maker is.
std::vector<std::string> nested_devices(uint32_t num_devices);
std::vector<uint32_t> nested_value_devices(const Graph& graph,
                                           const std::vector<std::string>& devices);

}  // namespace eddy
