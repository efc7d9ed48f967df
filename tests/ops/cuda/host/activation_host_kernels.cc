// The kernels of activations.cu, on the host.
#include "ops/cuda/device/unary_ops.h"
#include "ops/cuda/elementwise/division_inl.h"
#include "ops/cuda/elementwise/elementwise_inl.h"
#include "ops/cuda/names/kernel_list.h"
#include "tests/ops/cuda/host/host_kernels.h"

namespace eddy::testing {

void add_activation_host_kernels(HostKernels& kernels) {
  using namespace cuda;  // the types of the list
#define EDDY_HOST_BINARY(op, type) \
  EDDY_HOST_THREADS(op##_##type, ElementwiseParams, run_binary<op, type, type>)
#define EDDY_HOST_COMPARE(op, type) \
  EDDY_HOST_THREADS(op##_##type, ElementwiseParams, run_binary<op, bool, type>)
#define EDDY_HOST_UNARY(op, type) \
  EDDY_HOST_THREADS(op##_##type, ElementwiseParams, run_unary<op, type, type>)
#define EDDY_HOST_TEST(op, type) \
  EDDY_HOST_THREADS(op##_##type, ElementwiseParams, run_unary<op, bool, type>)
#define EDDY_HOST_TERNARY(op, type) \
  EDDY_HOST_THREADS(op##_##type, ElementwiseParams, run_ternary<op, type>)
  EDDY_CUDA_ACTIVATIONS(EDDY_HOST)
#define EDDY_HOST_DIVISION(op, type) \
  EDDY_HOST_THREADS(op##_##type, ElementwiseParams, run_division<op, type>)
  EDDY_CUDA_DIVISION(EDDY_HOST_DIVISION)
}

}  // namespace eddy::testing
