// The kernels of loop_control.h. Linked with the device's runtime library, which has
// cudaGraphSetConditional, so it is an image of its own: linked code has no PTX beside it.
#include "ops/cuda/images/loop_control.h"

#include "ops/cuda/device/grid_order_inl.h"
#include "ops/cuda/device/params.h"

namespace eddy::cuda {
namespace {

struct SetConditional {
  __device__ void operator()(uint64_t handle, uint32_t value) const {
    cudaGraphSetConditional(static_cast<cudaGraphConditionalHandle>(handle), value);
  }
};
struct GlobalTime {
  __device__ uint64_t operator()() const {
    uint64_t ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
  }
};

}  // namespace

extern "C" __global__ void eddy_loop_step(const __grid_constant__ LoopStepParams params) {
  await_earlier_grids();
  let_next_grid_wait();
  loop_step(params, SetConditional(), GlobalTime());
}

extern "C" __global__ void eddy_case_choice(const __grid_constant__ CaseChoiceParams params) {
  await_earlier_grids();
  let_next_grid_wait();
  case_choice(params, SetConditional());
}

extern "C" __global__ void __launch_bounds__(kBlockThreads)
    eddy_loop_copy(const __grid_constant__ LoopCopyParams params) {
  await_earlier_grids();
  let_next_grid_wait();
  const uint64_t first = uint64_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  const bool is_on = loop_copy_parts(params, first, uint64_t{gridDim.x} * kBlockThreads);
  if ((params.flags & LoopStepParams::kBehindAll) != 0) __syncthreads();
  if (is_on) loop_copy_step(params, first, SetConditional(), GlobalTime());
  if (params.told == nullptr) return;
  __syncthreads();
  if (threadIdx.x == 0) tell_end(params);
}

}  // namespace eddy::cuda
