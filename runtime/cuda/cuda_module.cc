#include "runtime/cuda/cuda_module.h"

#include <algorithm>

#include "graph/base/check.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/images/image.h"
#include "runtime/cuda/cuda_launch.h"
#include "runtime/device/no_waiting.h"

namespace eddy {
namespace {

constexpr uint64_t kLaunchesOfACall = 4;  // at most, of a library: a guess
static_assert(cuda::kBlockThreads % 32 == 0 && cuda::kBlockThreads <= 1024, "warps fill a block");

}  // namespace

Result<std::unique_ptr<CudaModule>> CudaModule::load(CudaContext& context,
                                                     std::span<const void* const> images,
                                                     KernelCompiler* compiler_or_null) {
  if (images.empty()) {
    return unsupported("this build has no CUDA kernels; build it where nvcc and cuda.h are");
  }
  const CudaContext::Use use(context);
  std::unique_ptr<CudaModule> loaded(new CudaModule(context, compiler_or_null));
  for (const void* image : images) {
    EDDY_CHECK(image != nullptr) << "an image is missing";
    CuModule module = nullptr;
    Status status = context.check(context.api().module_load(&module, image), "cuModuleLoadData");
    if (!status.is_ok()) {
      return std::move(status.prepend_message(
          "the CUDA kernels don't load (made by CUDA " + cuda_version_text(cuda_image_toolkit()) +
          " for compute capability 8.0 and newer; the device has " +
          cuda_version_text(context.facts().compute_capability * 100) +
          ", the driver is for CUDA " + cuda_version_text(context.facts().driver_version) + ")"));
    }
    loaded->modules_.push_back(module);
  }
  return loaded;
}

CudaModule::~CudaModule() {
  const CaptureTurns::Alone alone(context_.capture_turns());
  const CudaContext::Use use(context_);
  for (CuModule module : modules_) context_.api().module_unload(module);
}

Result<CudaFunction> CudaModule::find(std::string_view name) {
  EDDY_CHECK(!name.empty()) << "a kernel without a name is looked for";
  std::lock_guard lock(mutex_);
  const auto found = functions_.find(name);
  if (found != functions_.end()) return CudaFunction(found->second);
  const CudaContext::Use use(context_);
  CuFunction function = nullptr;
  const std::string key(name);
  CuResult result = CuResult::kNotFound;
  for (size_t i = 0; i < modules_.size() && result == CuResult::kNotFound; ++i) {
    result = context_.api().module_function(&function, modules_[i], key.c_str());
  }
  if (result == CuResult::kNotFound) return unsupported("the CUDA image has no kernel " + key);
  EDDY_RETURN_IF_ERROR(context_.check(result, "cuModuleGetFunction"));
  functions_.emplace(key, function);
  return CudaFunction(function);
}

Result<CudaFunction> CudaModule::compile(const cuda::KernelSource& source) {
  if (compiler_or_null_ == nullptr) return CudaLauncher::compile(source);
  EDDY_CHECK(!source.name.empty()) << "a kernel without a name is made";
  std::lock_guard lock(mutex_);
  const auto found = functions_.find(source.name);
  if (found != functions_.end()) return CudaFunction(found->second);
  EDDY_RETURN_IF_ERROR(context_.health());
  EDDY_ASSIGN_OR_RETURN(const std::string code,
                        compiler_or_null_->compile(source, context_.facts().compute_capability));
  const CudaContext::Use use(context_);
  CuModule module = nullptr;
  EDDY_RETURN_IF_ERROR(
      context_.check(context_.api().module_load(&module, code.data()), "cuModuleLoadData"));
  modules_.push_back(module);
  CuFunction function = nullptr;
  EDDY_RETURN_IF_ERROR(
      context_.check(context_.api().module_function(&function, module, source.name.c_str()),
                     "cuModuleGetFunction"));
  functions_.emplace(source.name, function);
  return CudaFunction(function);
}

Status CudaModule::launch(CudaFunction function, uint32_t num_blocks, const void* params,
                          NativeStream stream) {
  EDDY_RETURN_IF_ERROR(context_.health());
  const CudaContext::Use use(context_);
  const auto native =
      static_cast<CuFunction>(const_cast<void*>(static_cast<const void*>(function)));
  return launch_grid(context_, native, num_blocks, cuda::kBlockThreads, params,
                     static_cast<CuStream>(stream));
}

Status CudaModule::in_context(const std::function<Status()>& calls) {
  EDDY_RETURN_IF_ERROR(context_.health());
  context_.count_launches(kLaunchesOfACall);
  const CudaContext::Use use(context_);
  return calls();
}

Status CudaModule::alone_in_context(const std::function<Status()>& calls) {
  EDDY_RETURN_IF_ERROR(context_.health());
  if (NoWaiting::refuses()) return resource_exhausted("a thread may not wait for recordings");
  const CaptureTurns::Alone alone(context_.capture_turns());
  const CudaContext::Use use(context_);
  return calls();
}

void CudaModule::on_stream_end(const void* key, std::function<void(NativeStream)> keeper) {
  context_.stream_ends().add(key,
                             [keeper = std::move(keeper)](CuStream stream) { keeper(stream); });
}

void CudaModule::on_recording_stream(const void* key, std::function<void(NativeStream)> keeper) {
  context_.recording_streams().add(
      key, [keeper = std::move(keeper)](CuStream stream) { keeper(stream); });
}

void CudaModule::forget_streams(const void* key) {
  context_.stream_ends().remove(key);
  context_.recording_streams().remove(key);
}

uint32_t CudaModule::num_resident_blocks() const {
  const CudaDeviceFacts& facts = context_.facts();
  const auto threads = static_cast<uint32_t>(std::max(facts.max_threads_per_multiprocessor, 1));
  const auto processors = static_cast<uint32_t>(std::max(facts.num_multiprocessors, 1));
  return std::max(processors * (threads / cuda::kBlockThreads), 1u);
}

}  // namespace eddy
