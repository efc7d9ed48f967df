#include "ops/cuda/elementwise_inl.h"
#include "ops/cuda/movement_inl.h"
#include "ops/cuda/movement_list.h"
#include "tests/ops/cuda/host_kernels.h"

namespace eddy::testing {

void add_movement_host_kernels(HostKernels& kernels) {
  using namespace cuda;  // the types of the list
  EDDY_CUDA_MOVEMENT(EDDY_HOST_THREADS)
}

}  // namespace eddy::testing
