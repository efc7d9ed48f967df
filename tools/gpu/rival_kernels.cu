// The kernels of rival_kernels.h, linked with the device's runtime library for
// cudaGraphSetConditional.
#include "tools/gpu/rival_kernels.h"

namespace eddy::cuda {

extern "C" __global__ void eddy_rival_step(const __grid_constant__ RivalParams params) {
  rival_step(
      params,
      [](uint64_t handle, uint32_t value) {
        cudaGraphSetConditional(static_cast<cudaGraphConditionalHandle>(handle), value);
      },
      [] { __threadfence_system(); });
}

extern "C" __global__ void eddy_rival_trap(const __grid_constant__ TrapParams params) {
  rival_trap(params, [] { __trap(); });
}

}  // namespace eddy::cuda
