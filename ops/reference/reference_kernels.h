// add_reference_kernels: a plain loop for every operator, right by inspection.
//
// The oracle for all other kernels and the last resort for types they do not handle. Library
// name in reports: "reference". Floating-point sums are accumulated in double.
#pragma once

#include "ops/contract/registry.h"

namespace eddy {

void add_reference_kernels(KernelRegistry& registry);

}  // namespace eddy
