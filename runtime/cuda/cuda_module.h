// CudaModule: the kernels' fat binaries, loaded on one GPU: what ops/cuda launches through; beside
// them the kernels that are made while programs are bound.
//
// Ownership: the context outlives the module, the module every kernel bound through it. Streams
// must be idle when it goes: a running kernel's code would go with it.
// Errors: load() names the device and what the driver answered; find() is kUnsupported for a name
// that the image lacks; compile() what the compiler or the driver says; launch() is what
// CudaContext::check makes of the answer.
// Threads: any; find() and compile() take a lock, launch() none.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ops/cuda/compiled/kernel_compiler.h"
#include "ops/cuda/launch/launcher.h"
#include "runtime/cuda/cuda_context.h"

namespace eddy {

class CudaModule : public CudaLauncher {
 public:
  // `images`: fat binaries, cubins or PTX; read during the call only. None: this build has none,
  // kUnsupported. Their kernels have names of their own. A null compiler makes no kernels.
  static Result<std::unique_ptr<CudaModule>> load(CudaContext& context,
                                                  std::span<const void* const> images,
                                                  KernelCompiler* compiler_or_null = nullptr);
  ~CudaModule() override;

  Result<CudaFunction> find(std::string_view name) override;
  Result<CudaFunction> compile(const cuda::KernelSource& source) override;
  Status launch(CudaFunction function, uint32_t num_blocks, const void* params,
                NativeStream stream) override;
  Status in_context(const std::function<Status()>& calls) override;
  Status alone_in_context(const std::function<Status()>& calls) override;
  const void* device() const override { return context_.handle(); }
  Status keep_device() override { return context_.keep(); }
  uint32_t num_resident_blocks() const override;
  void on_stream_end(const void* key, std::function<void(NativeStream)> keeper) override;
  void on_recording_stream(const void* key, std::function<void(NativeStream)> keeper) override;
  void forget_streams(const void* key) override;

 private:
  CudaModule(CudaContext& context, KernelCompiler* compiler_or_null)
      : context_(context), compiler_or_null_(compiler_or_null) {}

  CudaContext& context_;
  KernelCompiler* const compiler_or_null_;
  std::mutex mutex_;
  std::vector<CuModule> modules_;                             // under the mutex once loaded
  std::map<std::string, CuFunction, std::less<>> functions_;  // under the mutex
};

}  // namespace eddy
