// GraphCosts: what the nodes of a graph with loops and branches cost on several devices. The table
// beside a Graph (graph/ir) that expand_graph.h reads.
//
//   Graph       which node reads what, in which region, and what loops carry: of a file
//               (operator_file.h) or an imported model (model_costs.h)
//   GraphCosts  by region: its operators, their strategy, what they read of other regions;
//               by loop or case: what it decides
//
// A tensor is named by its source: the first output of the node that makes it, whichever output is
// read, or the parameter by which a loop carries it. A loop or case is read as a whole. Constants,
// the graph's inputs and iteration numbers are there from the start and have no source.
//
// Contract: names of operators, loops and cases are unique in the graph. Threads: const access
// from any.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/simulate/scenario.h"
#include "graph/strategy/operators/operator_graph.h"

namespace eddy {

inline constexpr uint32_t kAnyDevice = UINT32_MAX;

// An operator's input from another region, or from a loop or case of its own region.
struct OuterInput {
  uint32_t op = 0;  // in its region's operators
  ValueId source;
  Dims shape = {};  // rank 0: not known, all of it is read
  std::array<InputDim, kMaxRank> dims = {};
};

// The lists' orders settle ties.
struct RegionCosts {
  OperatorGraph operators;  // may be empty; their inputs are those of the same region
  Strategy strategy;
  std::vector<OuterInput> outer_inputs;
  std::vector<NodeId> nodes;     // by operator
  std::vector<NodeId> controls;  // loops and cases

  bool is_empty() const { return nodes.empty() && controls.empty(); }
};

struct ControlCosts {
  std::string name;
  Decision decision;                 // on kAnyDevice: where all that it decides about runs
  std::vector<ValueId> inputs = {};  // sources that it waits for, whether or not its regions do
};

struct GraphCosts {
  explicit GraphCosts(const Graph& graph)
      : regions(graph.num_regions()), numbers(graph.num_nodes()) {}

  std::vector<RegionCosts> regions;                   // by RegionId
  std::vector<uint32_t> numbers;                      // by NodeId: place in its region's list
  std::unordered_map<NodeId, ControlCosts> controls;  // of every loop and case

  const std::string& name(const Graph& graph, NodeId node) const;
  // Adds an operator that reads tensors of these sources and shapes; op.inputs has their dims.
  void add_operator(const Graph& graph, NodeId node, Operator op,
                    const std::vector<ValueId>& sources, const std::vector<Dims>& shapes);
  void add_control(const Graph& graph, NodeId node, ControlCosts costs);
};

// None: the value is there from the start.
ValueId source_of(const Graph& graph, ValueId value);
// Those of a node's inputs that have one.
std::vector<ValueId> sources_of(const Graph& graph, const Node& node);

// How many ways a case can go: one more than it has regions where it may pass values through.
size_t num_branches(const Node& node);

// The operators whose times come from a roofline (part_cost.h), those of a region before those of
// the loops and cases in it.
std::vector<std::string> estimated_operators(const Graph& graph, const GraphCosts& costs);

}  // namespace eddy
