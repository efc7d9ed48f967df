// Operator-graph files: operators, a topology, a strategy and edits of it, as JSON.
//
//   {"operators": [{"name", "type", "shape": [...], "inputs": [name...]?, "exe_by_tile": {...}?,
//                   "flops"?, "in_features"?, "in_channels"?, "kernel"?, "stride"?, "groups"?,
//                   "axis"?, "axes"?, "perm"?, "weights_of": name?}...],
//    "topology": {"devices": [name or {"name", "flops"?, "memory_rate"?, "launch"?,
//                             "memory_bytes"?}...],
//                 "switches": [name...]?, "bytes_per_element": 4?,
//                 "links": [{"from", "to", "bandwidth", "latency"?, "channel"?}...]?,
//                 "bandwidth": {"default": b}?, "latency": {"default": l}?,
//                 "flops"?, "memory_rate"?, "launch"?, "memory_bytes"? (of all devices)},
//    "strategy": {operator: {"degree": [...], "reduce": r?, "devices": [name...]}}?,
//    "training": bool?,
//    "edits": [{"op": "set_config", "operator", "degree", "reduce"?, "devices"} or
//              {"op": "batch", "ops": [...]}]?}
//
// Operators may stand in any order, and loops and branches among them (the folder's README).
// Without "strategy" everything runs on the first device; with it, every operator needs an entry.
// Names are unique in the whole file; those of devices are strings or integers. Unknown keys are
// ignored. regions.h says what each type means, topology.h the units, expand_graph.h what crosses
// links.
//
// Errors (invalid argument, one line, naming the operator, link or edit): JSON that does not parse;
// misshapen keys; a name twice or of nothing; entries that wait for each other; and whatever
// topology, regions, check_config, check_memory and expand_graph refuse. Cost: linear in the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/simulate/scenario.h"
#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/topology.h"
#include "graph/strategy/scenarios/graph_costs.h"

namespace eddy {

struct ConfigChange {
  uint32_t op = 0;
  OperatorConfig config;
};
// Applied together; one entry unless the file's edit is a batch.
using ConfigEdit = std::vector<ConfigChange>;

struct OperatorFile {
  OperatorGraph graph;
  Topology topology;
  Strategy strategy;
  std::vector<ConfigEdit> edits;
  bool has_strategy = false;
};

// Whether the document is an operator-graph file: an object with "operators".
bool is_operator_file(const nlohmann::json& document);

// `ops_or_null`: the ONNX operators that may be named.
Result<OperatorFile> parse_operator_file(std::string_view json, const OpTable* ops_or_null);
Result<OperatorFile> parse_operator_file(const nlohmann::json& document,
                                         const OpTable* ops_or_null);

// Whether an operator-graph file has a loop or branch; then it is a ScenarioFile.
bool has_loops_or_branches(const nlohmann::json& document);

struct ScenarioFile {
  Topology topology;
  ScenarioRegion root;                 // expand_graph.h says what it holds
  std::vector<std::string> estimated;  // operators, at any depth (part_cost.h)
};
Result<ScenarioFile> read_scenario_file(const nlohmann::json& document, const OpTable* ops_or_null);

// The parts, for files that hold only one of them.
Result<OperatorGraph> read_operators(const nlohmann::json& document, const OpTable* ops_or_null);
Result<Topology> read_topology(const nlohmann::json& topology);
// Of {operator: {"degree", "reduce"?, "devices"}}.
Result<Strategy> read_strategy(const nlohmann::json& strategy, const OperatorGraph& graph,
                               const Topology& topology);

// The same of all regions; null: everything on the first device.
Status read_strategies(const nlohmann::json* strategy_or_null, const Topology& topology,
                       GraphCosts& costs);

// {operator: {"degree", "reduce"?, "devices"}}: what read_strategy() reads.
std::string strategy_json(const OperatorGraph& graph, const Topology& topology,
                          const Strategy& strategy);

}  // namespace eddy
