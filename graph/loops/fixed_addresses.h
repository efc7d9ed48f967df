// find_fixed_addresses: which values have their memory at one address in every run of one state.
//
// A value has a fixed address when its node, of known shapes, writes it to the one block that the
// memory plan has for it and nothing moves it: no region has it as a result (transfers swap those).
// What leaves the graph, and might be made in a caller's memory, has no block. A view of such a
// value has a fixed address, too.
//
// Nothing need be found for these values while a run goes on: the addresses in the arguments of
// their nodes and readers are set once, and a view of one does nothing.
//
// Errors: none. Threads: pure. Cost: O(values + uses).
#pragma once

#include <functional>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/plan/memory_plan.h"

namespace eddy {

// By ValueId: the value in whose block it stands, itself or what it is a view of; none: it may
// move. `makes_outputs`: whether a node's kernel makes the memory of its outputs by itself.
std::vector<ValueId> find_fixed_addresses(const Graph& graph, const MemoryPlan& memory,
                                          const std::function<bool(NodeId)>& makes_outputs);

}  // namespace eddy
