// add_cpu_kernels: what a CPU session runs. The reference kernels first, then the fast ones, so
// that lookup (later additions first) falls back to the plain loop where no fast kernel fits.
#pragma once

#include "ops/contract/registry.h"

namespace eddy {

void add_cpu_kernels(KernelRegistry& registry);

}  // namespace eddy
