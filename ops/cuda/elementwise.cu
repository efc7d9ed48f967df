// The device's half of elementwise and movement operators: one kernel for each line of
// kernel_list.h.
#include "ops/cuda/elementwise_inl.h"
#include "ops/cuda/kernel_list.h"

namespace eddy::cuda {

#define EDDY_KERNEL(name, ...)                                                 \
  extern "C" __global__ void __launch_bounds__(kBlockThreads)                  \
      eddy_##name(const __grid_constant__ ElementwiseParams params) {          \
    const uint64_t first = uint64_t{blockIdx.x} * kBlockThreads + threadIdx.x; \
    __VA_ARGS__(params, first, uint64_t{gridDim.x} * kBlockThreads);           \
  }
#define EDDY_KERNEL_BINARY(op, type) EDDY_KERNEL(op##_##type, run_binary<op, type, type>)
#define EDDY_KERNEL_COMPARE(op, type) EDDY_KERNEL(op##_##type, run_binary<op, bool, type>)
#define EDDY_KERNEL_UNARY(op, type) EDDY_KERNEL(op##_##type, run_unary<op, type>)
#define EDDY_KERNEL_WORDS(size, word)        \
  EDDY_KERNEL(Where_##size, run_where<word>) \
  EDDY_KERNEL(Copy_##size, run_copy<word>)

EDDY_CUDA_KERNELS(EDDY_KERNEL)

}  // namespace eddy::cuda
