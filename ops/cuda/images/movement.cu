// The device's half of operators that move or convert elements: one kernel for each line of
// movement_list.h.
#include "ops/cuda/device/device_inl.h"
#include "ops/cuda/elementwise/elementwise_inl.h"
#include "ops/cuda/movement/movement_inl.h"
#include "ops/cuda/names/movement_list.h"

namespace eddy::cuda {

EDDY_CUDA_MOVEMENT(EDDY_DEVICE_THREADS)

}  // namespace eddy::cuda
