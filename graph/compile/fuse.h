// fuse: trees of elementwise nodes of one device become one node each, eddy.Fused.
//
// A device reads and writes every value between two elementwise nodes once each, and launches two
// kernels; one kernel of both keeps it in a register. What is fused: from a node down, all
// elementwise nodes whose result is read by nodes of the tree alone, in the same region, on the
// device, of the same shape as the tree's result (equal sizes or symbols, or through operators of
// one input). Trees are as large as that allows, up to the limits below; a result that two nodes of
// a tree read is computed once. Loop bodies and branches are regions like all others. What others
// read, too (a node, a loop, the region's results), is a further result of the node if all of them
// come behind the tree's end, and the tree reads nothing that is made behind it; else, and where it
// is a loop's predicate (find_trip_rule), it stays a node of its own.
//
// A Split whose parts such trees alone read, and whose sizes are known, goes: they read the parts
// where they lie (eddy.FusedParts). For that a tree may be a single node.
//
// The device defines what an operator does to an element (function_of), and decides whether the
// kernel can be made (prepare); a tree that it refuses stays as it was, and the report has the
// reason. The nodes' functions are applied one after the other, each rounded as by a kernel of its
// own, so values are the same bits.
//
// Takes the graph over; a graph without such trees comes back as it is. `value_devices` as in
// place.h. Errors: those of building the graph. Cost: O(nodes × max_inputs).
// Sources: loop fusion of operators by their index patterns, as in TVM (Chen et al., OSDI 2018,
// section 3: "injective" operators) and XLA's producer-consumer fusion; the condition on readers is
// DNNFusion's one-to-one case (Niu et al., PLDI 2021, section 3.2).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/expression.h"
#include "graph/ir/graph.h"

namespace eddy {

struct FuseOptions {
  std::string device = "cuda";
  // What the node does to each element; none: it is not elementwise there. The fused node does the
  // broadcasts.
  std::function<std::optional<ElementFunction>(const Graph& graph, NodeId node)> function_of;
  // Makes the kernel for inputs and results of these types, so that binding finds it.
  std::function<Status(const Expression& expression, const std::vector<ElementType>& inputs,
                       const std::vector<ElementType>& outputs)>
      prepare;
  size_t max_inputs = 20;
  size_t max_results = 4;
  size_t max_steps = Expression::kMaxSteps;
};

struct FuseReport {
  struct Kernel {
    std::string path;                // of the node that the tree ends in; the fused node has it
    std::vector<std::string> nodes;  // "Mul scale", in order
  };
  std::vector<Kernel> kernels;
  std::vector<std::string> splits;                           // paths of those that went
  std::vector<std::pair<std::string, std::string>> refused;  // path, why

  // "2 fused kernels of 5 nodes", then a line for each, for each Split and each refusal; empty
  // without any.
  std::string text() const;
};

struct FusedGraph {
  Graph graph;
  std::vector<uint32_t> value_devices;
  FuseReport report;
};

Result<FusedGraph> fuse(Graph graph, const OpTable& ops, std::vector<uint32_t> value_devices,
                        const FuseOptions& options);

}  // namespace eddy
