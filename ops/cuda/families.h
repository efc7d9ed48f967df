// The families of CUDA kernels, each in a file of its own.
#pragma once

#include <string>

#include "ops/contract/registry.h"
#include "ops/cuda/launcher.h"

namespace eddy {

void add_elementwise_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_movement_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_rows_cuda(KernelRegistry& registry, CudaLauncher& launcher);

namespace cuda {

// State of every kernel here.
struct LaunchState : KernelState {
  CudaLauncher* launcher = nullptr;
  CudaFunction function = nullptr;
  float a = 0;
  float b = 0;
};

// "f32" of kFloat; empty where no kernel computes the type.
std::string_view type_suffix(ElementType element);
// "float16 is not supported by the CUDA kernel of Add".
Status no_cuda_kernel(const KernelInit& init);
// Finds eddy_<name>.
template <typename State>
Status find_kernel(CudaLauncher& launcher, const std::string& name, State& state) {
  state.launcher = &launcher;
  EDDY_ASSIGN_OR_RETURN(state.function, launcher.find("eddy_" + name));
  return Status::ok();
}

}  // namespace cuda
}  // namespace eddy
