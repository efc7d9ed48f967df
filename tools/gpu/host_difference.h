// host_difference: where a GPU's results leave those of the CPU: floats by more than a thousandth
// of their size and a hundred-thousandth of the output's largest value, anything else at all. Where
// products have been rounded to TF32's 10 bits of fraction, by a hundredth and five thousandths.
//
// Sums in another order round otherwise; a wrong branch, step or element does not hide in that.
#pragma once

#include <string>

#include "runtime/api/tensor.h"

namespace eddy {

struct HostTolerance {
  double relative = 1e-3;
  double of_largest = 1e-5;
};
inline constexpr HostTolerance kTf32Tolerance = {1e-2, 5e-3};

// Empty when they agree; else the first output that does not, and where.
std::string host_difference(const NamedTensors& expected, const NamedTensors& found,
                            const HostTolerance& tolerance = {});

}  // namespace eddy
