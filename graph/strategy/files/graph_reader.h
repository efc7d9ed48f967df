// read_graph: the entries of an operator-graph file (operator_file.h) as a Graph, built by
// GraphBuilder (graph/ir), and the table beside it (graph_costs.h).
//
// Each entry is a node: an operator of type "operator" with the attribute "shape", a while or a
// case-of. Names are values while their list is read: operators read those of their own list, of
// lists around it and, in a body, of its `before` (which forwards all that it makes). The graph
// says what depends on what; predicates and selectors are constants, and the table says how they
// decide.
//
// Errors (invalid argument, naming the entry): what is no list or has no name; a name twice; a name
// that is not visible or nowhere; entries that wait for each other; lists nested deeper than
// kMaxControlDepth; those of file_entries.h and cost_reader.h. Threads: pure.
// Cost: O(depth * entries).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/strategy/operators/topology.h"
#include "graph/strategy/scenarios/graph_costs.h"

namespace eddy {

inline constexpr int kMaxControlDepth = 64;

struct FileGraph {
  OpTable ops;  // that of the graph
  Graph graph;
  GraphCosts costs;  // without strategies
};

// Whether a list has a loop or branch.
bool has_control_flow(const nlohmann::json& list);

// `ops_or_null`: the ONNX operators that may be named. `topology_or_null`: null: there are no
// loops and branches.
Result<FileGraph> read_graph(const nlohmann::json& list, const Topology* topology_or_null,
                             const OpTable* ops_or_null);

}  // namespace eddy
