// element_function: what an elementwise node does to one element, as a function of
// element_functions.h: by it the registry binds the node's own kernel, and fusion makes a step.
//
// Contract: pure. Errors: kUnsupported as below.
#pragma once

#include <span>
#include <string_view>

#include "graph/base/status.h"
#include "graph/ir/expression.h"
#include "ops/contract/kernel.h"

namespace eddy::cuda {

// What a node applies. An operator of one input and two of its kind (Max of more than two, Clip
// without limits) is not one function: kUnsupported, as are types without a kernel.
Result<ElementFunction> element_function(const KernelInit& init);
// Whether element_function has the operator.
bool is_elementwise(std::string_view op);
// The operators of two inputs whose kernels are their functions.
std::span<const std::string_view> binary_operators();

}  // namespace eddy::cuda
