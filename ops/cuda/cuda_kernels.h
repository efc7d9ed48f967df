// add_cuda_kernels: what a CUDA device runs. What is not here runs on the CPU.
//
// Here: elementwise operators with broadcasting (one launch each, vectorised where operands are
// contiguous) and movement by strided copy. Not here on purpose: integer division (a zero divisor
// is an error of the run, which a kernel on the device cannot raise) and attributes of opsets
// before 7.
//
// `launcher` outlives every kernel bound through the registry.
// Errors: binding says kUnsupported for types and versions without a kernel; running passes on
// what the launcher says.
#pragma once

#include "ops/contract/registry.h"
#include "ops/cuda/launcher.h"

namespace eddy {

void add_cuda_kernels(KernelRegistry& registry, CudaLauncher& launcher);

}  // namespace eddy
