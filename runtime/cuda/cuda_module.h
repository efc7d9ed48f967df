// CudaModule: the kernels' fat binary, loaded on one GPU: what ops/cuda launches through.
//
// Ownership: the context outlives the module, the module every kernel bound through it. Streams
// must be idle when it goes: a running kernel's code would go with it.
// Errors: load() names the device and what the driver answered; find() is kUnsupported for a name
// that the image lacks; launch() is what CudaContext::check makes of the answer.
// Threads: any; find() takes a lock, launch() none.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "ops/cuda/launcher.h"
#include "runtime/cuda/cuda_context.h"

namespace eddy {

class CudaModule : public CudaLauncher {
 public:
  // `image`: a fat binary, a cubin or PTX; read during the call only. Null: there is none in this
  // build, kUnsupported.
  static Result<std::unique_ptr<CudaModule>> load(CudaContext& context, const void* image);
  ~CudaModule() override;

  Result<CudaFunction> find(std::string_view name) override;
  Status launch(CudaFunction function, uint32_t num_blocks, const void* params,
                NativeStream stream) override;
  uint32_t num_resident_blocks() const override;

 private:
  CudaModule(CudaContext& context, CuModule module) : context_(context), module_(module) {}

  CudaContext& context_;
  const CuModule module_;
  std::mutex mutex_;
  std::map<std::string, CuFunction, std::less<>> functions_;  // under the mutex
};

}  // namespace eddy
