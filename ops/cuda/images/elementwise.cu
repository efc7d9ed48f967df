// The device's half of elementwise operators and short rows: one kernel for each line of
// kernel_list.h.
#include "ops/cuda/device/device_inl.h"
#include "ops/cuda/device/unary_ops.h"
#include "ops/cuda/elementwise/elementwise_inl.h"
#include "ops/cuda/names/kernel_list.h"
#include "ops/cuda/reduce/row_inl.h"

namespace eddy::cuda {

#define EDDY_KERNEL_OF(Params, name, ...) EDDY_DEVICE_THREADS(name, Params, __VA_ARGS__)
#define EDDY_KERNEL(name, ...) EDDY_DEVICE_THREADS(name, ElementwiseParams, __VA_ARGS__)
#define EDDY_KERNEL_BINARY(op, type) EDDY_KERNEL(op##_##type, run_binary<op, type, type>)
#define EDDY_KERNEL_COMPARE(op, type) EDDY_KERNEL(op##_##type, run_binary<op, bool, type>)
#define EDDY_KERNEL_UNARY(op, type) EDDY_KERNEL(op##_##type, run_unary<op, type, type>)
#define EDDY_KERNEL_WORDS(size, word)        \
  EDDY_KERNEL(Where_##size, run_where<word>) \
  EDDY_KERNEL(Copy_##size, run_copy<word>)

#define EDDY_KERNEL_REDUCE(op, type) EDDY_KERNEL_OF(RowParams, op##_##type, run_reduce<op, type>)
#define EDDY_KERNEL_EXTREME(op, type) EDDY_KERNEL_OF(RowParams, op##_##type, run_extreme<op, type>)
#define EDDY_KERNEL_ARG(op, type) EDDY_KERNEL_OF(RowParams, op##_##type, run_arg<op, type>)
#define EDDY_KERNEL_SOFTMAX(op, type) EDDY_KERNEL_OF(RowParams, op##_##type, run_softmax<op, type>)

EDDY_CUDA_KERNELS(EDDY_KERNEL)
EDDY_CUDA_ROWS(EDDY_KERNEL)

}  // namespace eddy::cuda
