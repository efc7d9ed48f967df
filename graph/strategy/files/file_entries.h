// One entry of an operator-graph file (operator_file.h): an operator, what a loop or branch
// decides, how an operator is cut. Internal to the readers of these files.
//
// Errors (invalid argument) name the entry and the field. Threads: pure. Cost: linear in the entry.
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/simulate/json_fields.h"
#include "graph/simulate/scenario.h"
#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/regions.h"
#include "graph/strategy/operators/topology.h"

namespace eddy {

// Before its inputs are found.
struct FileOperator {
  Operator op = {};  // flops < 0: not given
  OperatorAttributes attributes = {};
  std::vector<std::string> inputs = {};
  std::string weights_of = {};
};

// Of an object with the string "name".
Result<FileOperator> read_operator(const nlohmann::json& entry);
// Of a loop ("trips") or a branch ("probabilities"), or of either "distribution" or "trace".
Result<Decision> read_decision(const JsonFields& control, bool is_loop, const Topology& topology);
// {"degree", "reduce"?, "devices"}; whether it fits its operator is not looked at.
Result<OperatorConfig> read_config(const JsonFields& fields, const Topology& topology);

}  // namespace eddy
