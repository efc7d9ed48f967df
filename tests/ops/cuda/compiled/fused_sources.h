// The kernels of random programs and loops that write_fused_sources prints, compiled by the host's
// compiler.
#pragma once

#include <cstdint>

namespace eddy::testing {

using FusedHostKernel = void (*)(const void* params, uint64_t first, uint64_t step);
extern const FusedHostKernel kFusedHostKernels[];
extern const int kNumFusedHostKernels;
// Persistent loops: each call runs the whole loop, whatever `first` and `step` are.
extern const FusedHostKernel kLoopHostKernels[];
extern const int kNumLoopHostKernels;

inline constexpr uint64_t kFusedSourcesSeed = 20261120;  // as BUILD gives it to the program

}  // namespace eddy::testing
