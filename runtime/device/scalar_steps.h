// ScalarSteps: nodes of one element each as steps of a launch that a capture makes anyway: what a
// GraphCapture may also be. A loop's counter and test then cost no launch of their own.
//
//   if (auto expression = steps.scalar_of(init, kernel)) …
//   steps.compute(*expression, inputs, made)        in stream 0, behind all that it holds
//
// Contract: the same bits as from the node's own kernel. `made` has an address of eight bytes in
// the device's memory for each step of the expression; the last step's is the node's result. Errors
// and threads: those of the capture.
#pragma once

#include <optional>
#include <span>

#include "graph/base/status.h"
#include "graph/ir/expression.h"
#include "ops/contract/kernel.h"

namespace eddy {

class ScalarSteps {
 public:
  // What the node, whose kernel this is, does to one element of each input; none: it keeps its
  // kernel.
  virtual std::optional<Expression> scalar_of(const KernelInit& init,
                                              const BoundKernel& kernel) const = 0;
  virtual Status compute(const Expression& expression, std::span<const void* const> inputs,
                         std::span<void* const> made) = 0;

 protected:
  ~ScalarSteps() = default;
};

}  // namespace eddy
