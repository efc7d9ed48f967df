// The kernels around the bodies, for sources of the device only.
#pragma once

#include "ops/cuda/device/block_inl.h"
#include "ops/cuda/device/grid_order_inl.h"

// A kernel of threads: body(params, first, step).
#define EDDY_DEVICE_THREADS(name, Params, ...)                                    \
  extern "C" __global__ void __launch_bounds__(kBlockThreads)                     \
      eddy_##name(const __grid_constant__ Params params, const unsigned* guard) { \
    await_earlier_grids();                                                        \
    let_next_grid_wait();                                                         \
    if (is_called_off(guard)) return;                                             \
    const uint64_t first = uint64_t{blockIdx.x} * kBlockThreads + threadIdx.x;    \
    __VA_ARGS__(params, first, uint64_t{gridDim.x} * kBlockThreads);              \
  }

// A kernel of blocks: Body::run(params, block, shared).
#define EDDY_DEVICE_BLOCKS(name, ...)                                                          \
  extern "C" __global__ void __launch_bounds__(kBlockThreads)                                  \
      eddy_##name(const __grid_constant__ __VA_ARGS__::Params params, const unsigned* guard) { \
    await_earlier_grids();                                                                     \
    let_next_grid_wait();                                                                      \
    if (is_called_off(guard)) return;                                                          \
    using Body = __VA_ARGS__;                                                                  \
    __shared__ typename Body::Shared shared;                                                   \
    Body::run(params, Block{blockIdx.x, gridDim.x}, shared);                                   \
  }
