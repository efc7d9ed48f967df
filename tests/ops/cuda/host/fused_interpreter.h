// Fused kernels without their compiler: an interpreter of programs, one element and one step at a
// time, and the reading of a kernel's source back into its program.
//
// It knows functions by the lists of kernels, not by the texts that fused_text.h writes, so it is
// what those are checked against; and it runs fused kernels on fakes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/expression.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/text/fused_text.h"

namespace eddy::testing {

class FusedInterpreter {
 public:
  // Refuses a text that fused_kernel_source does not write for the program that it names.
  static Result<FusedInterpreter> read(const std::string& text);
  FusedInterpreter(Expression expression, std::vector<ElementType> inputs,
                   std::vector<ElementType> outputs)
      : expression_(std::move(expression)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  // What a thread does that handles items first, first + step, …
  void run(const cuda::FusedParams& params, uint64_t first, uint64_t step) const;
  // One element: from that of each input, 8 bytes or less, into that of each result.
  void run_element(const void* const* inputs, void* const* outputs) const;

 private:
  Expression expression_;
  std::vector<ElementType> inputs_;
  std::vector<ElementType> outputs_;
};

}  // namespace eddy::testing
