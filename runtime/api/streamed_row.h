// find_streamed_row: which loop stacks the rows of an output that is to be streamed.
//
// Errors: kNotFound for no such output; kInvalidArgument for one that no loop of the graph itself
// stacks, with those that can be streamed. Threads: pure. Cost: O(outputs).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/api/session_report.h"

namespace eddy {

struct StreamedRow {
  NodeId loop;
  uint32_t row = 0;  // among the loop's stacks
};

Result<StreamedRow> find_streamed_row(const Graph& graph,
                                      const std::vector<ValueDescription>& outputs,
                                      const std::string& name);

}  // namespace eddy
