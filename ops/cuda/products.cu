// The device's half of products, convolutions and recurrences: one kernel for each line of
// product_list.h.
#include "ops/cuda/device_inl.h"
#include "ops/cuda/product_inl.h"
#include "ops/cuda/product_list.h"
#include "ops/cuda/recurrent_inl.h"

namespace eddy::cuda {

EDDY_CUDA_PRODUCTS(EDDY_DEVICE_BLOCKS)

}  // namespace eddy::cuda
