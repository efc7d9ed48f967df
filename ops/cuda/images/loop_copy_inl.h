// The frame of sources that copy_source.h makes: one launch of eddy_loop_copy (loop_control.h) as a
// kernel of its own, by the same parameters.
//
// A `Body` has
//   first(params, set, now)      what the first thread does
//   each(params, thread, step)   what all threads do: maps, and pieces that are not small
//   last(params, set, now)       what the first thread does behind all others, where kWaits, of
//                                one block, says so
//   kTells                       whether one block tells the host of its end
// Each looks by itself whether it is called off.
#pragma once

#include "ops/cuda/device/grid_order_inl.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/images/loop_control.h"

namespace eddy::cuda {

// Bytes that are any type's.
template <int kSize>
struct alignas(kSize) AnyBytes {
  unsigned char bytes[kSize];
};
template <int kSize>
EDDY_HD void copy_bytes(void* to, const void* from) {
  *static_cast<AnyBytes<kSize>*>(to) = *static_cast<const AnyBytes<kSize>*>(from);
}

}  // namespace eddy::cuda

#ifdef __CUDACC__
// Of the device's runtime library; the driver knows it when it loads text.
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

namespace eddy::cuda {

struct SetConditionalByText {
  __device__ void operator()(uint64_t handle, uint32_t value) const {
    cudaGraphSetConditional(handle, value);
  }
};
struct GlobalTimeByText {
  __device__ uint64_t operator()() const {
    uint64_t ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
  }
};

template <typename Body>
__device__ inline void run_loop_copy(const LoopCopyParams& p) {
  const uint64_t thread = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (thread == 0) Body::first(p, SetConditionalByText(), GlobalTimeByText());
  Body::each(p, thread, uint64_t{gridDim.x} * blockDim.x);
  if constexpr (Body::kWaits) {
    __syncthreads();
    if (thread == 0) Body::last(p, SetConditionalByText(), GlobalTimeByText());
  }
  if constexpr (Body::kTells) {
    __syncthreads();
    if (threadIdx.x == 0) tell_end(p);
  }
}

}  // namespace eddy::cuda

#define EDDY_LOOP_COPY_KERNEL(name, Body)                                 \
  extern "C" __global__ void __launch_bounds__(eddy::cuda::kBlockThreads) \
      name(const __grid_constant__ eddy::cuda::LoopCopyParams params) {   \
    eddy::cuda::await_earlier_grids();                                    \
    eddy::cuda::let_next_grid_wait();                                     \
    eddy::cuda::run_loop_copy<Body>(params);                              \
  }
#else
// Tests give a word's address for a handle, and call for one thread after the other.
#define EDDY_LOOP_COPY_KERNEL(name, Body)                                    \
  extern "C" void name(const void* params, uint64_t thread, uint64_t step) { \
    const auto& p = *static_cast<const eddy::cuda::LoopCopyParams*>(params); \
    const auto set = [](uint64_t handle, uint32_t value) {                   \
      *reinterpret_cast<uint32_t*>(handle) = value;                          \
    };                                                                       \
    if (thread == 0) Body::first(p, set, [] { return uint64_t{1} << 40; });  \
    Body::each(p, thread, step);                                             \
    if (Body::kWaits && thread + 1 == step) {                                \
      Body::last(p, set, [] { return uint64_t{1} << 40; });                  \
    }                                                                        \
    if (Body::kTells && thread == 0) eddy::cuda::tell_end(p);                \
  }
#endif
