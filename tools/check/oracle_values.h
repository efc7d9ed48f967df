// The oracle's values and operators: one exec node evaluated into fresh tensors.
//
// Internal to the oracle. evaluate() computes the mixing operators itself and calls the library's
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

// Kernels of a graph's nodes; each is bound at its first use.
class OracleKernels {
 public:
  // All outlive it; without a registry, the library's kernels.
  OracleKernels(const Graph& graph, const Library& library, const KernelRegistry* registry_or_null)
      : graph_(graph),
        library_(library),
        registry_(registry_or_null != nullptr ? *registry_or_null : library.cpu_kernels()),
        kernels_(graph.num_nodes()) {}

  const Graph& graph() const { return graph_; }
  const Library& library() const { return library_; }
  Result<const BoundKernel*> kernel(NodeId id);

 private:
  const Graph& graph_;
  const Library& library_;
  const KernelRegistry& registry_;
  std::vector<BoundKernel> kernels_;  // by NodeId
};

// An omitted input is Tensor().
Result<std::vector<Tensor>> evaluate(OracleKernels& kernels, NodeId id, const Node& node,
                                     std::span<const Tensor> inputs);

// Rows on top of each other; without any, dimension 0 and the known dimensions of `row_type`
// (unknown: 0).
Result<Tensor> stack(std::span<const Tensor> rows, const TensorType& row_type);

}  // namespace eddy::check
