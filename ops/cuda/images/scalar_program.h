// scalar_expression, scalar_steps: a node of one element each as steps of scalar_step.h: the host's
// half.
//
// Contract: pure. Every step of scalar_expression()'s answer has a place in scalar_steps(), in
// order, and there are at most kMaxScalarSteps. Cost: O(steps).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/ir/expression.h"
#include "ops/contract/kernel.h"
#include "ops/cuda/images/loop_control.h"

namespace eddy::cuda {

// None: the node is not elementwise, or one of its functions is not among those of scalar_step.h.
std::optional<Expression> scalar_expression(const KernelInit& init);

// `inputs`: as many as the expression has; `made`: an address for each step's result.
std::vector<ScalarStepParams> scalar_steps(const Expression& expression,
                                           std::span<const void* const> inputs,
                                           std::span<void* const> made);

}  // namespace eddy::cuda
