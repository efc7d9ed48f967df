// The frame of fused kernels, around a body whose text fused_text.h makes: loads, broadcasting,
// packs and the grid-stride loop are those of elementwise_inl.h, with one pass for all functions.
//
// A body has
//   kInputs, kCount                 inputs, elements of a pack
//   Packs, load_packs(p, first)     a pack of each input
//   Results, at_pack(packs, k, results)   a pack of each result: of element k
//   store_packs(p, item, results)
//   at(p, offsets, item)            the results of one element of each input
// and has read all inputs of an item when it stores the first result.
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

template <typename T>
EDDY_HD T* output(const FusedParams& p, int k) {
  return static_cast<T*>(k == 0 ? p.out : p.more_out[k - 1]);
}
template <typename T, int kCount>
EDDY_HD void store_pack(const FusedParams& p, int k, uint64_t item, const Pack<T, kCount>& pack) {
  reinterpret_cast<Pack<T, kCount>*>(output<T>(p, k))[item] = pack;
}

template <typename Body>
EDDY_HD void run_fused(const FusedParams& p, uint64_t first, uint64_t step) {
  constexpr int kCount = Body::kCount;
  if (p.is_aligned != 0) {
    const uint64_t num_packs = p.count / kCount;
    for (uint64_t item = first; item < num_packs; item += step) {
      const auto packs = Body::load_packs(p, item * kCount);
      typename Body::Results results;
      for (int k = 0; k < kCount; ++k) Body::at_pack(packs, k, results);
      Body::store_packs(p, item, results);
    }
    first += num_packs * kCount;  // the rest, one element an item
  }
  for (uint64_t item = first; item < p.count; item += step) {
    int64_t at[Body::kInputs];
    locate(p, item, at);
    Body::at(p, at, item);
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
