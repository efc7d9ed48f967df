// Operator-graph files with loops and branches: the scenarios (scenario.h) they describe.
//
// An entry of "operators" may be a loop or a branch with operators of its own:
//
//   {"name": "decode", "type": "while", "inputs": [name...]?, "before": [operator...]?,
//    "body": [operator...], "trips": n or "distribution": [[trips, probability]...] or
//    "trace": [trips...], "carried": [{"name", "next": name, "initial": name?}...]?,
//    "decision": {"time"?, "device"?}?}
//   {"name": "gate", "type": "case", "inputs": [name...]?, "branches": [[operator...]...],
//    "probabilities": [p...] or "distribution": [[branch, probability]...] or "trace": [branch...],
//    "decision": {"time"?, "device"?}?}
//
// "before" runs before each decision, "body" after each that goes on. "decision" is what reading
// the predicate back and launching what follows costs, on the device that drives (unless said, the
// one where all of its regions run, or the first one); without it a decision takes no time. Nested
// to any depth up to kMaxControlDepth.
//
// "carried" are values that operators in "before" and "body" read by their names: in the first turn
// what "initial" made outside (where it is not given, it is there), then what "next" made the turn
// before: an operator of the loop's lists or of lists around, or another carried value.
//
// Operators read those of their own list, of lists around it and, in a body, of its "before"; from
// outside a loop or branch is read as a whole. make_scenarios.h says what follows and what crosses
// links. The shape of what a loop makes is that of the one entry of its last list that nobody in it
// reads, of what a branch makes likewise of its first list that is not empty, that of a carried
// value its "next" has, or else its "initial"; where there is none, or it does not fit its reader,
// the reader needs in_features or in_channels. Names are unique in the whole file, as are the
// entries of its strategy. Files for training and edits cannot have loops or branches.
//
// Errors: those of operator_file.h, make_scenarios.h and scenario.h; a loop or branch without
// trips, probabilities or trace, or with two of them; lists nested too deep; an input that stands
// in another list. Cost: linear in the tasks of each list.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/simulate/scenario.h"
#include "graph/strategy/operator_list.h"
#include "graph/strategy/topology.h"

namespace eddy {

// Whether an operator-graph file has a loop or branch.
bool has_control_flow(const nlohmann::json& document);

struct ScenarioFile {
  Topology topology;
  ScenarioRegion root;
  std::vector<std::string> estimated;  // operators, at any depth (part_cost.h)
};
Result<ScenarioFile> read_scenario_file(const nlohmann::json& document, const OpTable* ops_or_null);

// The entries of a strategy that belong to one list.
Result<Strategy> read_list_strategy(const nlohmann::json& strategy, const OperatorGraph& graph,
                                    const Topology& topology);

}  // namespace eddy
