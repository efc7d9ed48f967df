// evaluate_node: runs one dense operator once, outside any program: for folding constants.
//
// `inputs` are views of all inputs (omitted ones are omitted views). An input of which only the
// shape is read may have null data. Errors: kUnsupported for value kernels and strings; else those
// of the operator's rule or kernel. Cost: binds a kernel, so not for hot paths.
#pragma once

#include <span>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/ir/owned_tensor.h"
#include "ops/contract/registry.h"

namespace eddy {

Result<std::vector<OwnedTensor>> evaluate_node(const KernelRegistry& registry, const OpDef& op,
                                               const Attributes& attributes, int opset_version,
                                               std::span<const TensorView> inputs,
                                               size_t num_outputs);

}  // namespace eddy
