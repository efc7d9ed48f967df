// What is asked of the runtime library itself.
#include <cuda_runtime_api.h>

#include <cub/version.cuh>

#include "ops/cuda/reduce/cub_entries.h"

namespace eddy::cuda {

const char* cub_error_text(int status) {
  return cudaGetErrorString(static_cast<cudaError_t>(status));
}

int cub_version() { return CUB_VERSION; }

CubRuntime cub_runtime() {
  CubRuntime runtime{cudaSuccess, 0, 0};
  cudaDriverGetVersion(&runtime.driver_version);
  cudaRuntimeGetVersion(&runtime.runtime_version);
  int num_devices = 0;
  runtime.status = cudaGetDeviceCount(&num_devices);
  static_cast<void>(cudaGetLastError());  // reported; of no concern to the calls that follow
  return runtime;
}

}  // namespace eddy::cuda
