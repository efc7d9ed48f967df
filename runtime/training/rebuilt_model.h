// A model rebuilt for a trainer. Ownership: results share the model's constants that stay.
// Errors: those of the builder. Cost: O(nodes + bytes of parameters).
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/ir/tensor_view.h"

namespace eddy {

using ParameterViews = std::unordered_map<std::string, TensorView>;

// The model with other bytes in the named initializers, which are copied.
Result<Graph> with_parameters(const Graph& model, const OpTable& ops,
                              const ParameterViews& parameters);

struct ProbedModel {
  Graph graph;  // outputs: one for each of `makers`
  std::vector<std::string> makers;
};

// The same, with the floating-point outputs of the root's nodes, in their order, as its outputs.
Result<ProbedModel> with_probes(const Graph& model, const OpTable& ops,
                                const ParameterViews& parameters);

}  // namespace eddy
