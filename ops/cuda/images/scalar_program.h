// scalar_expression, scalar_steps, map_steps: an elementwise node as steps of scalar_step.h, of one
// element or of many: the host's half.
//
// Contract: pure. Every step of scalar_expression()'s answer has a place in scalar_steps() and in
// map_steps(), in order, and there are at most kMaxScalarSteps. Cost: O(steps).
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

// Over `count` elements; `made` has room for as many, of an input only where it is not single.
std::vector<MapParams> map_steps(const Expression& expression, std::span<const void* const> inputs,
                                 const std::vector<bool>& are_single, uint64_t count,
                                 std::span<void* const> made);

}  // namespace eddy::cuda
