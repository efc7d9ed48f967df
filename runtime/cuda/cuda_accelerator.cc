#include "runtime/cuda/cuda_accelerator.h"

#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/image.h"
#include "runtime/cuda/cuda_module.h"
#include "runtime/cuda/cuda_recorder.h"
#include "runtime/cuda/cuda_transfers.h"

namespace eddy {
namespace {

// What kernels refer to; the device goes last.
struct Parts {
  std::shared_ptr<CudaDevice> device;
  std::unique_ptr<CudaModule> module;
  std::unique_ptr<CudaModule> loop_module;  // null: no kernels that decide loops
  CudaLoopKernels loop_kernels;
  KernelRegistry kernels;
};

// Where they don't load (a GPU newer than the image), loops are driven from the host.
void load_loop_kernels(Parts& parts, const void* image) {
  if (image == nullptr) return;
  Result<std::unique_ptr<CudaModule>> module = CudaModule::load(parts.device->context(), image);
  if (!module.is_ok()) return;
  parts.loop_module = std::move(*module);
  const auto find = [&](const char* name) {
    Result<CudaFunction> function = parts.loop_module->find(name);
    return function.is_ok() ? static_cast<CuFunction>(const_cast<void*>(*function)) : nullptr;
  };
  parts.loop_kernels = {find("eddy_loop_step"), find("eddy_case_choice")};
}

}  // namespace

Result<std::shared_ptr<const Accelerator>> make_cuda_accelerator(std::shared_ptr<const CudaApi> api,
                                                                 const CudaImages& images,
                                                                 const CudaDeviceOptions& options) {
  auto parts = std::make_shared<Parts>();
  EDDY_ASSIGN_OR_RETURN(parts->device, CudaDevice::create(std::move(api), options));
  EDDY_ASSIGN_OR_RETURN(parts->module, CudaModule::load(parts->device->context(), images.kernels));
  add_cuda_kernels(parts->kernels, *parts->module);
  add_cuda_transfers(parts->kernels, *parts->device);
  load_loop_kernels(*parts, images.loop_kernels);
  auto accelerator = std::make_shared<Accelerator>();
  accelerator->device = parts->device;
  accelerator->staging = &parts->device->staging();
  accelerator->is_staging = [device = parts->device.get()](const void* data, size_t size_bytes) {
    return device->is_staging(data, size_bytes);
  };
  accelerator->make_recorder = [parts = parts.get()]() -> std::unique_ptr<Recorder> {
    return CudaRecorder::create_or_null(parts->device->context(), parts->loop_kernels);
  };
  accelerator->kernels = std::shared_ptr<const KernelRegistry>(parts, &parts->kernels);
  return std::shared_ptr<const Accelerator>(std::move(accelerator));
}

Result<std::shared_ptr<const Accelerator>> make_cuda_accelerator(const CudaDeviceOptions& options) {
  EDDY_ASSIGN_OR_RETURN(auto api, load_cuda_api());
  return make_cuda_accelerator(std::move(api), {cuda_image().data, cuda_loop_image().data}, options);
}

}  // namespace eddy
