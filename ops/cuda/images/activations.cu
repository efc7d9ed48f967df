// The device's half of elementwise operators beyond those of elementwise.cu: one kernel for each
// line of EDDY_CUDA_ACTIVATIONS in kernel_list.h.
#include "ops/cuda/device/device_inl.h"
#include "ops/cuda/device/unary_ops.h"
#include "ops/cuda/elementwise/division_inl.h"
#include "ops/cuda/elementwise/elementwise_inl.h"
#include "ops/cuda/names/kernel_list.h"

namespace eddy::cuda {

#define EDDY_KERNEL(name, ...) EDDY_DEVICE_THREADS(name, ElementwiseParams, __VA_ARGS__)
#define EDDY_KERNEL_BINARY(op, type) EDDY_KERNEL(op##_##type, run_binary<op, type, type>)
#define EDDY_KERNEL_COMPARE(op, type) EDDY_KERNEL(op##_##type, run_binary<op, bool, type>)
#define EDDY_KERNEL_UNARY(op, type) EDDY_KERNEL(op##_##type, run_unary<op, type, type>)
#define EDDY_KERNEL_TEST(op, type) EDDY_KERNEL(op##_##type, run_unary<op, bool, type>)
#define EDDY_KERNEL_TERNARY(op, type) EDDY_KERNEL(op##_##type, run_ternary<op, type>)

#define EDDY_KERNEL_DIVISION(op, type) EDDY_KERNEL(op##_##type, run_division<op, type>)

EDDY_CUDA_ACTIVATIONS(EDDY_KERNEL)
EDDY_CUDA_DIVISION(EDDY_KERNEL_DIVISION)

}  // namespace eddy::cuda
