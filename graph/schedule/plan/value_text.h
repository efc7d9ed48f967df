// A value, and a region, in words for people: one way of saying it everywhere.
//
// A value is called by its name, else by what makes it: "output 0 of decode/MatMul", "the iteration
// of decode", "carried value 1 of decode", "input 2", "parameter 0 of pick/case 1". A region is
// called by its owner's path and its own name: "decode/after"; the root: "root".
//
// Threads: pure. Cost: O(depth of nesting).
#pragma once

#include <string>

#include "graph/ir/graph.h"

namespace eddy {

std::string value_text(const Graph& graph, ValueId value);
std::string region_text(const Graph& graph, RegionId region);

}  // namespace eddy
