// The kernels of loop_control.h. Linked with the device's runtime library, which has
// cudaGraphSetConditional, so it is an image of its own: linked code has no PTX beside it.
#include "ops/cuda/images/loop_control.h"

#include "ops/cuda/device/grid_order_inl.h"
#include "ops/cuda/device/params.h"

namespace eddy::cuda {

extern "C" __global__ void eddy_loop_step(const __grid_constant__ LoopStepParams params) {
  await_earlier_grids();
  let_next_grid_wait();
  loop_step(params, [](uint64_t handle, uint32_t value) {
    cudaGraphSetConditional(static_cast<cudaGraphConditionalHandle>(handle), value);
  });
}

extern "C" __global__ void eddy_case_choice(const __grid_constant__ CaseChoiceParams params) {
  await_earlier_grids();
  let_next_grid_wait();
  case_choice(params, [](uint64_t handle, uint32_t value) {
    cudaGraphSetConditional(static_cast<cudaGraphConditionalHandle>(handle), value);
  });
}

extern "C" __global__ void __launch_bounds__(kBlockThreads)
    eddy_loop_copy(const __grid_constant__ LoopCopyParams params) {
  await_earlier_grids();
  let_next_grid_wait();
  loop_copy(params, uint64_t{blockIdx.x} * kBlockThreads + threadIdx.x,
            uint64_t{gridDim.x} * kBlockThreads, [](uint64_t handle, uint32_t value) {
              cudaGraphSetConditional(static_cast<cudaGraphConditionalHandle>(handle), value);
            });
}

}  // namespace eddy::cuda
