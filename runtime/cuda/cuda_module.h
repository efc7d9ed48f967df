// CudaModule: the kernels' fat binaries, loaded on one GPU: what ops/cuda launches through.
//
// Ownership: the context outlives the module, the module every kernel bound through it. Streams
// must be idle when it goes: a running kernel's code would go with it.
// Errors: load() names the device and what the driver answered; find() is kUnsupported for a name
// that the image lacks; launch() is what CudaContext::check makes of the answer.
// Threads: any; find() takes a lock, launch() none.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ops/cuda/launcher.h"
#include "runtime/cuda/cuda_context.h"

namespace eddy {

class CudaModule : public CudaLauncher {
 public:
  // `images`: fat binaries, cubins or PTX; read during the call only. None: this build has none,
  // kUnsupported. Their kernels have names of their own.
  static Result<std::unique_ptr<CudaModule>> load(CudaContext& context,
                                                  std::span<const void* const> images);
  ~CudaModule() override;

  Result<CudaFunction> find(std::string_view name) override;
  Status launch(CudaFunction function, uint32_t num_blocks, const void* params,
                NativeStream stream) override;
  Status in_context(const std::function<Status()>& calls) override;
  uint32_t num_resident_blocks() const override;

 private:
  explicit CudaModule(CudaContext& context) : context_(context) {}

  CudaContext& context_;
  std::vector<CuModule> modules_;
  std::mutex mutex_;
  std::map<std::string, CuFunction, std::less<>> functions_;  // under the mutex
};

}  // namespace eddy
