#include "ops/cuda/elementwise/elementwise_inl.h"
#include "ops/cuda/movement/movement_inl.h"
#include "ops/cuda/names/movement_list.h"
#include "tests/ops/cuda/host/host_kernels.h"

namespace eddy::testing {

void add_movement_host_kernels(HostKernels& kernels) {
  using namespace cuda;  // the types of the list
  EDDY_CUDA_MOVEMENT(EDDY_HOST_THREADS)
}

}  // namespace eddy::testing
