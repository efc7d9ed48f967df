// ScalarSteps: elementwise nodes as steps of a launch that a capture makes anyway: what a
// GraphCapture may also be. A loop's counter and test, and the function that makes a carried value,
// then cost no launch of their own.
//
//   if (auto expression = steps.scalar_of(init, kernel)) …
//   steps.compute(*expression, inputs, made)        of one element; in stream 0, behind all it
//   holds steps.compute_all(*expression, …, made)         of as many elements as the result has
//
// Contract: the same bits as from the node's own kernel. `made` has an address in the device's
// memory for each step of the expression, with eight bytes an element; where a step makes a result,
// that is where the node's result goes, and may be an input that no later step reads. Errors and
// threads: those of the capture.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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
  // The most elements and steps for which compute_all() pays.
  static constexpr uint64_t kMostElements = uint64_t{1} << 16;
  static constexpr size_t kMostSteps = 2;
  struct Elements {
    uint64_t count;
    std::vector<bool> are_single;  // by input: one element serves all
  };
  virtual Status compute_all(const Expression& expression, std::span<const void* const> inputs,
                             const Elements& elements, std::span<void* const> made) = 0;

 protected:
  ~ScalarSteps() = default;
};

}  // namespace eddy
