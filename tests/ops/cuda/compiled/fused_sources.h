// The kernels of random programs and loops that write_fused_sources prints, compiled by the host's
// compiler.
#pragma once

#include <cstdint>

namespace eddy::testing {

using FusedHostKernel = void (*)(const void* params, uint64_t first, uint64_t step);
extern const FusedHostKernel kFusedHostKernels[];
extern const int kNumFusedHostKernels;
// Kernels of persistent loops: each runs the whole loop, for any `first` and `step`.
extern const FusedHostKernel kLoopHostKernels[];
extern const int kNumLoopHostKernels;

// Launches of eddy_loop_copy, for each of `step` threads; null: it has no source.
extern const FusedHostKernel kCopyHostKernels[];
extern const int kNumCopyHostKernels;

inline constexpr uint64_t kCopySourcesSeed = 28;
inline constexpr uint64_t kFusedSourcesSeed = 20261120;  // as BUILD gives it to the program

}  // namespace eddy::testing
