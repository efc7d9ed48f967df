// differentiate: a graph's gradient, as one graph with the forward pass.
//
//   inputs  x, w, ...              inputs  x, w, ... (and the seed)
//   outputs loss, ...      ──>     outputs loss, ..., x.grad, w.grad, ...
//
// Reverse accumulation: the forward pass is copied, and behind it each node that lies between a
// parameter and the loss hands its output's adjoint to its inputs by its operator's rule
// (gradient_rule.h). A while loop becomes a while loop that runs backward, a case-of a case-of
// (reverse.h); what they read of the forward pass is kept on tapes (kept_values.h). The result is a
// graph like any other: it is planned, proved, exported and differentiated as such.
//
// The graph is taken over. Errors, each with what to do: kNotFound for a name that is no value, or
// a path in `save` that is no loop's; kInvalidArgument for a loss or parameter of integers, a loss
// of more than one element without a seed, one that does not depend on a parameter that was named,
// a seed of another shape, an output that has a gradient's name; kUnsupported for an operator
// without a rule on an active path (with the parameter that needs it, and how to stop there). Cost:
// O(nodes × nodes of a rule). Source: Griewank and Walther, "Evaluating Derivatives" (2008),
// chapters 3 and 12.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/differentiate/gradient_report.h"
#include "graph/differentiate/gradient_rule.h"
#include "graph/differentiate/save_policy.h"
#include "graph/ir/graph.h"

namespace eddy {

struct DifferentiateOptions {
  std::string loss;  // an output or another value of the root
  // Inputs or initializers; empty: all of floating-point type on which the loss depends.
  std::vector<std::string> wrt = {};
  // An input that holds the loss's adjoint: there already, or added. Empty: one, so the loss must
  // have one element.
  std::string seed = {};
  std::vector<std::string> stop = {};  // values that count as constants
  // Initializers among `wrt` become inputs (report: which), as a training step needs them.
  bool initializers_become_inputs = false;
  std::string suffix = ".grad";  // of the outputs; another one for a second derivative
  // What loops keep for their way back. With `exact`, gradients have the same bits whatever it
  // says.
  SavePolicies save = {};
  // Adjoints of matrices that a loop multiplies by are added up iteration by iteration, even where
  // one product behind the loop takes less time.
  bool exact = false;
};

struct GradientGraph {
  Graph graph;
  GradientReport report;
};

Result<GradientGraph> differentiate(Graph graph, const OpTable& ops, const GradientTable& rules,
                                    const DifferentiateOptions& options);

// The initializers that an empty `wrt` would name, in the graph's order: what training changes.
// Errors: those of differentiate() about the loss, and kInvalidArgument where there are none.
Result<std::vector<std::string>> initializers_behind(const Graph& graph, const GradientTable& rules,
                                                     const DifferentiateOptions& options);

}  // namespace eddy
