// host_difference: where a GPU's results leave those of the CPU: floats by more than a thousandth
// of their size and a hundred-thousandth of the output's largest value, anything else at all.
//
// Sums in another order round otherwise; a wrong branch, step or element does not hide in that.
#pragma once

#include <string>

#include "runtime/api/tensor.h"

namespace eddy {

// Empty when they agree; else the first output that does not, and where.
std::string host_difference(const NamedTensors& expected, const NamedTensors& found);

}  // namespace eddy
