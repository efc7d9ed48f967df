// EinsumEquation: what an equation like "...ij,jk->...ik" says of each operand's axes.
//
// Labels are numbers: those of letters are equal where the letters are; those of the axes that an
// ellipsis stands for count from its last axis, so that shorter ones line up at the end.
//
// Without "->" the result has the ellipsis' axes and then, in the order of the alphabet, the
// letters that occur once (capitals first). Blanks mean nothing.
//
// Errors: kInvalidArgument that quotes the equation. Cost: O(length). Source: ONNX operator Einsum,
// opset 12; NumPy's einsum.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

struct EinsumEquation {
  using Labels = std::vector<int>;  // one for each axis
  std::vector<Labels> operands;
  Labels result;
};

// Checks the equation without knowing ranks.
Status check_einsum(std::string_view equation, size_t num_operands);
// `ranks` of the operands.
Result<EinsumEquation> parse_einsum(std::string_view equation, std::span<const int> ranks);

}  // namespace eddy
