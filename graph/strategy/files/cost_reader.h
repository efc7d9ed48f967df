// read_costs: the table (graph_costs.h) beside the graph that an operator-graph file became
// (graph_reader.h): the operators of each list with the regions they read, and what decides.
//
// Shapes: of an operator the file's. A loop has that of the one entry of its last list that nothing
// reads, a branch likewise of its first list that is not empty, a carried value that of its "next",
// or else of its "initial". Where there is none, or one does not fit an operator of the list, the
// list's operators read all of it and need in_features or in_channels.
//
// Errors (invalid argument), naming the operator: those of regions.h; weights_of in a circle, or of
// another list. Threads: pure. Cost: linear in the graph.
#pragma once

#include <optional>
#include <vector>

#include "graph/base/status.h"
#include "graph/strategy/files/file_entries.h"
#include "graph/strategy/scenarios/graph_costs.h"

namespace eddy {

// An entry that has become a node of the graph.
struct FileNode {
  ValueId value;
  std::optional<FileOperator> op_or_none;
  ControlCosts control = {};  // inputs: values
};
using FileNodes = std::vector<FileNode>;  // of one list, as they stand in it

Result<GraphCosts> read_costs(const Graph& graph, const std::vector<FileNodes>& lists,
                              const OpTable* ops_or_null);

}  // namespace eddy
