// The device's half of products, convolutions and recurrences: one kernel for each line of
// product_list.h.
#include "ops/cuda/device/device_inl.h"
#include "ops/cuda/names/product_list.h"
#include "ops/cuda/products/product_inl.h"
#include "ops/cuda/products/recurrent_inl.h"
#include "ops/cuda/products/tensor_tile_inl.h"

namespace eddy::cuda {

EDDY_CUDA_PRODUCTS(EDDY_DEVICE_BLOCKS)

}  // namespace eddy::cuda
