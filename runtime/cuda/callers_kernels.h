// Kernels of a caller's, beside those of ops/cuda.
//
// As any kernel on a CUDA stream (ops/contract/kernel.h), but that they know no launcher: bind and
// each call are made with the GPU's context current, so that calls of CUDA's runtime or driver go
// where they should. A call may be recorded, and then runs again without being made.
// Errors: what the kernel says; once the GPU is lost, its status, and no call is made.
#pragma once

#include "ops/contract/registry.h"
#include "ops/cuda/launch/launcher.h"

namespace eddy {

// `launcher` outlives what is bound. kUnsupported where the entry binds no run().
KernelEntry in_context_of(CudaLauncher& launcher, KernelEntry entry);

}  // namespace eddy
