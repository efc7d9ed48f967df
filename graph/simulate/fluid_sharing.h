// fluid_rates: how fast kernels run that share a machine.
//
// Max-min fair: all rates rise together until a resource (units, bandwidth) is used up; those that
// use it keep what they have, the others go on, up to rate 1. So a kernel is slowed only by a
// resource that it uses itself, and nothing lies idle that a kernel could still use.
//
// Threads: pure. Cost: O(kernels), at most three times.
// Source: Bertsekas and Gallager, "Data Networks", section 6.5.2 (progressive filling).
#pragma once

#include <span>

#include "graph/simulate/fluid_machine.h"

namespace eddy {

// rates[i] in (0, 1] for demands[i]; both of one size. Demands fit the machine one by one.
void fluid_rates(double num_units, std::span<const FluidDemand> demands, std::span<double> rates);

}  // namespace eddy
