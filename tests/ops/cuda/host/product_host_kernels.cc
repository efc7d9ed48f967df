#include "ops/cuda/names/product_list.h"
#include "ops/cuda/products/product_inl.h"
#include "ops/cuda/products/recurrent_inl.h"
#include "ops/cuda/products/tensor_tile_inl.h"
#include "tests/ops/cuda/host/host_kernels.h"

namespace eddy::testing {

void add_product_host_kernels(HostKernels& kernels) {
  using namespace cuda;  // the types of the list
  EDDY_CUDA_PRODUCTS(EDDY_HOST_BLOCKS)
}

}  // namespace eddy::testing
