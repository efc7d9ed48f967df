#include "runtime/cuda/cuda_accelerator.h"

#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/image.h"
#include "runtime/cuda/cuda_module.h"
#include "runtime/cuda/cuda_transfers.h"

namespace eddy {
namespace {

// What kernels refer to; the device goes last.
struct Parts {
  std::shared_ptr<CudaDevice> device;
  std::unique_ptr<CudaModule> module;
  KernelRegistry kernels;
};

}  // namespace

Result<std::shared_ptr<const Accelerator>> make_cuda_accelerator(std::shared_ptr<const CudaApi> api,
                                                                 const void* image,
                                                                 const CudaDeviceOptions& options) {
  auto parts = std::make_shared<Parts>();
  EDDY_ASSIGN_OR_RETURN(parts->device, CudaDevice::create(std::move(api), options));
  EDDY_ASSIGN_OR_RETURN(parts->module, CudaModule::load(parts->device->context(), image));
  add_cuda_kernels(parts->kernels, *parts->module);
  add_cuda_transfers(parts->kernels, *parts->device);
  auto accelerator = std::make_shared<Accelerator>();
  accelerator->device = parts->device;
  accelerator->staging = &parts->device->staging();
  accelerator->kernels = std::shared_ptr<const KernelRegistry>(parts, &parts->kernels);
  return std::shared_ptr<const Accelerator>(std::move(accelerator));
}

Result<std::shared_ptr<const Accelerator>> make_cuda_accelerator(const CudaDeviceOptions& options) {
  EDDY_ASSIGN_OR_RETURN(auto api, load_cuda_api());
  return make_cuda_accelerator(std::move(api), cuda_image().data, options);
}

}  // namespace eddy
