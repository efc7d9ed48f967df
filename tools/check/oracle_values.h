// The oracle's values and operators: one exec node evaluated into fresh tensors.
//
// Internal to the oracle. evaluate() knows the hash operators by itself and calls the library's
// kernels for all others, dense and value kernels alike; views are computed as any other operator.
// Cost: an allocation an output; a kernel is bound when its node first runs.
#pragma once

#include <span>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/api/library.h"
#include "runtime/api/tensor.h"

namespace eddy::check {

// Kernels of a graph's nodes, bound one by one when first asked for.
class OracleKernels {
 public:
  OracleKernels(const Graph& graph, const Library& library)
      : graph_(graph), library_(library), kernels_(graph.num_nodes()) {}

  const Graph& graph() const { return graph_; }
  const Library& library() const { return library_; }
  Result<const BoundKernel*> kernel(NodeId id);

 private:
  const Graph& graph_;
  const Library& library_;
  std::vector<BoundKernel> kernels_;  // by NodeId
};

// An omitted input is Tensor().
Result<std::vector<Tensor>> evaluate(OracleKernels& kernels, NodeId id, const Node& node,
                                     std::span<const Tensor> inputs);

// Rows on top of each other; without any, dimension 0 and what `row_type` knows (unknown: 0).
Result<Tensor> stack(std::span<const Tensor> rows, const TensorType& row_type);

}  // namespace eddy::check
