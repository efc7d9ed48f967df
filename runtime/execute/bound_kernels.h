// BoundKernels: what binding has made of a graph, as executables of the same graph share it: its
// kernels, with the weights that they have packed.
//
// Kernels that users add hold a state for each program that runs, and host predicates belong to
// one session: such a node's place is empty here, and each executable binds it for itself.
//
// Ownership: kernels may read the graph's constants, so the graph must outlive this.
// Threads: immutable, once an executable has made it.
#pragma once

#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "ops/contract/kernel.h"

namespace eddy {

// Of entries that programs add to a registry: their kernels are bound by each executable.
inline constexpr std::string_view kCustomProvider = "custom";

struct BoundKernels {
  std::vector<BoundKernel> kernels;          // by NodeId
  std::vector<ConstantId> unread_constants;  // whose bytes may be gone
};

}  // namespace eddy
