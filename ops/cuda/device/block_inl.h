// Block: a block's threads, written once for the device and for the host.
//
// A kernel that shares memory among threads is a sequence of phases, each a function of the
// thread's number; behind each stands a barrier:
//
//   block.each([&](int thread) { shared.sums[thread] = …; });
//   block.each([&](int thread) { if (thread == 0) out = shared.sums[0] + …; });
//
// On the device a phase runs in all threads and ends in __syncthreads(); on the host it is a loop
// over the threads. So phases must not branch around each other by thread, and what a thread keeps
// from one phase to the next lives in a PerThread: a register there, an array here.
//
// A body is a struct with `Params`, `Shared` (memory of the block) and
// `run(const Params&, const Block&, Shared&)`; blocks take work items index, index + count, …, so
// any grid serves any count.
// Source of the transformation: work-group loops, as in Jääskeläinen et al., "pocl: A
// Performance-Portable OpenCL Implementation" (2015), section 4.
#pragma once

#include "ops/cuda/device/params.h"
#include "ops/cuda/device/scalar_ops.h"

#ifdef __CUDACC__
#define EDDY_UNROLL _Pragma("unroll")
#define EDDY_UNROLL_BY_16 _Pragma("unroll 16")
#else
#define EDDY_UNROLL
#define EDDY_UNROLL_BY_16
#endif

namespace eddy::cuda {

inline constexpr int kThreads = static_cast<int>(kBlockThreads);
inline constexpr int kWarpThreads = 32;

struct Block {
  uint64_t index = 0;
  uint64_t count = 1;

  template <typename Phase>
  EDDY_HD void each(Phase phase) const {
#ifdef __CUDA_ARCH__
    phase(static_cast<int>(threadIdx.x));
    __syncthreads();
#else
    for (int thread = 0; thread < kThreads; ++thread) phase(thread);
#endif
  }
};

template <typename T>
struct PerThread {
#ifdef __CUDA_ARCH__
  T value;
  EDDY_HD T& operator[](int) { return value; }
#else
  T values[kThreads];
  EDDY_HD T& operator[](int thread) { return values[thread]; }
#endif
};

// A phase of threads that share memory within groups of kLanes alone: the barrier behind it is that
// of a warp, or of the block.
template <int kLanes, typename Phase>
EDDY_HD void each_of(const Block& block, Phase phase) {
  static_assert(kLanes == kWarpThreads || kLanes == kThreads, "a warp or the whole block");
#ifdef __CUDA_ARCH__
  if constexpr (kLanes == kWarpThreads) {
    phase(static_cast<int>(threadIdx.x));
    __syncwarp();
  } else {
    block.each(phase);
  }
#else
  block.each(phase);
#endif
}

// The first item of each kLanes becomes the combination of all of them, in an order that depends on
// nothing.
template <int kLanes, typename T, typename Combine>
EDDY_HD void reduce_lanes(const Block& block, T (&items)[kBlockThreads], Combine combine) {
  int half = kLanes / 2;
  const auto halve = [&](int thread) {
    if (thread % kLanes < half) items[thread] = combine(items[thread], items[thread + half]);
  };
  for (; half >= kWarpThreads; half /= 2) each_of<kLanes>(block, halve);
  // From here on one warp combines, whatever the lanes; then all see the first item.
  for (; half > 0; half /= 2) each_of<kWarpThreads>(block, halve);
  if constexpr (kLanes > kWarpThreads) block.each([](int) {});
}
template <typename T, typename Combine>
EDDY_HD void reduce_block(const Block& block, T (&items)[kBlockThreads], Combine combine) {
  reduce_lanes<kThreads>(block, items, combine);
}

}  // namespace eddy::cuda
