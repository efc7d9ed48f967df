// make_cuda_accelerator: a GPU as the second device of a session: streams and memory
// (cuda_device.h), the kernels of ops/cuda on a loaded module, and the copies.
//
//   SessionOptions options;
//   options.make_accelerator = [] { return make_cuda_accelerator({.ordinal = 0}); };
//
// Errors: what opening the driver, the device and the kernels' image says; kUnsupported for a build
// without kernels. Cost: the driver's start and loading the image, some 100 ms.
#pragma once

#include <memory>

#include "runtime/cuda/cuda_device.h"
#include "runtime/execute/accelerator.h"

namespace eddy {

Result<std::shared_ptr<const Accelerator>> make_cuda_accelerator(const CudaDeviceOptions& options);
// The images of ops/cuda/image.h; null: none.
struct CudaImages {
  const void* kernels = nullptr;
  const void* loop_kernels = nullptr;
};
// On a given driver and images (a test's).
Result<std::shared_ptr<const Accelerator>> make_cuda_accelerator(std::shared_ptr<const CudaApi> api,
                                                                 const CudaImages& images,
                                                                 const CudaDeviceOptions& options);

}  // namespace eddy
