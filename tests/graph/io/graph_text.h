// describe: a graph as text in which equal graphs are equal, whatever numbers their values have.
// For comparing what an importer made with what was meant.
#pragma once

#include <string>

#include "graph/ir/graph.h"

namespace eddy::test {

// Values are numbered in the order in which they are defined; constants stand inline with type
// and content.
std::string describe(const Graph& graph);

}  // namespace eddy::test
