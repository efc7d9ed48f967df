// Compares what a run gave with what was expected.
//
// Numbers agree when |found - expected| <= atol + rtol * |expected|; NaN agrees with NaN, an
// infinity with itself. Neighbouring bfloat16 numbers agree unless rtol is 0. Integers, bools,
// strings and floats of 8 bits and less must be equal, but NaN may have other bits; element types
// and shapes must be equal too.
#pragma once

#include <optional>
#include <string>

#include "graph/io/host_value.h"

namespace eddy {

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-7;
};

// Nothing when they agree, else the first place where they do not:
// "at [0,3] of [2,4]: expected 1, found 2 (5 of 8 elements differ, by at most 1.5)".
std::optional<std::string> find_difference(const HostValue& found, const HostValue& expected,
                                           const Tolerance& tolerance);
// The same of tensors of one type and shape, in the host's memory.
std::optional<std::string> find_difference(const TensorView& found, const TensorView& expected,
                                           const Tolerance& tolerance);

}  // namespace eddy
