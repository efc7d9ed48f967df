// The frame of fused kernels, around a body whose text fused_text.h makes: loads, broadcasting,
// packs and the grid-stride loop are those of elementwise_inl.h, with one pass for all functions.
//
// A body has
//   Out, kInputs, kCount            the result's type, inputs, elements of a pack
//   Packs, load_packs(p, first)     a pack of each input
//   at_pack(packs, k)               the result of element k of them
//   at(p, offsets)                  the result of one element of each input
// Compiled by NVRTC when a program is bound, and by the host's compiler and nvcc in tests.
#pragma once

#include "ops/cuda/device/grid_order_inl.h"
#include "ops/cuda/device/unary_ops.h"
#include "ops/cuda/elementwise/elementwise_inl.h"

namespace eddy::cuda {

// The float of these bits: attributes keep every digit.
EDDY_HD float float_of(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } both{bits};
  return both.value;
}

template <typename Body>
EDDY_HD void run_fused(const FusedParams& p, uint64_t first, uint64_t step) {
  using Out = typename Body::Out;
  constexpr int kCount = Body::kCount;
  Out* const out = static_cast<Out*>(p.out);
  if (p.is_aligned != 0) {
    const uint64_t num_packs = p.count / kCount;
    for (uint64_t item = first; item < num_packs; item += step) {
      const auto packs = Body::load_packs(p, item * kCount);
      Pack<Out, kCount> result;
      for (int k = 0; k < kCount; ++k) result.values[k] = Body::at_pack(packs, k);
      reinterpret_cast<Pack<Out, kCount>*>(out)[item] = result;
    }
    first += num_packs * kCount;  // the rest, one element an item
  }
  for (uint64_t item = first; item < p.count; item += step) {
    int64_t at[Body::kInputs];
    locate(p, item, at);
    out[item] = Body::at(p, at);
  }
}

}  // namespace eddy::cuda

#ifdef __CUDACC__
#define EDDY_FUSED_KERNEL(name, Body)                                                       \
  extern "C" __global__ void __launch_bounds__(eddy::cuda::kBlockThreads)                   \
      name(const __grid_constant__ eddy::cuda::FusedParams params, const unsigned* guard) { \
    eddy::cuda::await_earlier_grids();                                                      \
    eddy::cuda::let_next_grid_wait();                                                       \
    if (eddy::cuda::is_called_off(guard)) return;                                           \
    const unsigned long first =                                                             \
        (unsigned long)(blockIdx.x) * eddy::cuda::kBlockThreads + threadIdx.x;              \
    eddy::cuda::run_fused<Body>(params, first,                                              \
                                (unsigned long)(gridDim.x) * eddy::cuda::kBlockThreads);    \
  }
#else
#define EDDY_FUSED_KERNEL(name, Body)                                                        \
  extern "C" void name(const void* params, uint64_t first, uint64_t step) {                  \
    eddy::cuda::run_fused<Body>(*static_cast<const eddy::cuda::FusedParams*>(params), first, \
                                step);                                                       \
  }
#endif
