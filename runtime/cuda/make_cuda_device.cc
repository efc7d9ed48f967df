#include "runtime/cuda/make_cuda_device.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "graph/base/check.h"
#include "ops/cuda/compiled/disk_choices.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/elementwise/node_function.h"
#include "ops/cuda/images/image.h"
#include "ops/cuda/text/persistent_text.h"
#include "runtime/cuda/callers_kernels.h"
#include "runtime/cuda/cuda_graph_capture.h"
#include "runtime/cuda/cuda_module.h"
#include "runtime/cuda/cuda_transfers.h"
#include "runtime/cuda/programmatic_launch.h"

namespace eddy {
namespace {

class CudaCompile : public Compile {
 public:
  explicit CudaCompile(CudaModule& module) : module_(module) {}

  std::optional<ElementFunction> function_of(const KernelInit& init) const override {
    Result<ElementFunction> function = cuda::element_function(init);
    if (!function.is_ok()) return std::nullopt;
    return std::move(*function);
  }
  Status prepare_elements(const Expression& expression, const std::vector<ElementType>& inputs,
                          const std::vector<ElementType>& outputs) override {
    EDDY_ASSIGN_OR_RETURN(const cuda::KernelSource source,
                          cuda::fused_kernel_source(expression, inputs, outputs));
    return module_.compile(source).status();
  }
  Result<const void*> prepare_loop(const LoopProgram& program) override {
    EDDY_ASSIGN_OR_RETURN(const cuda::KernelSource source, cuda::persistent_kernel_source(program));
    return module_.compile(source);
  }
  // One block, whose launch takes what the call has by value.
  Status launch_loop(const void* kernel, const LoopCall& call, void* native_stream) override {
    cuda::LoopParams params{};
    EDDY_DCHECK(kernel != nullptr) << "a loop without its kernel";
    if (call.inputs.size() > std::size(params.in) || call.results.size() > std::size(params.out)) {
      return internal_error("a persistent loop has more inputs or results than its kernel takes");
    }
    std::ranges::copy(call.inputs, params.in);
    std::ranges::copy(call.results, params.out);
    params.given = call.given;
    params.limit = call.limit;
    params.stop = call.stop;
    params.progress = call.progress;
    return module_.launch(kernel, 1, &params, native_stream);
  }

 private:
  CudaModule& module_;
};

// What kernels refer to; the device goes last.
struct Parts {
  std::shared_ptr<CudaDevice> device;
  std::unique_ptr<KernelCompiler> compiler;  // null: no fused kernels
  std::unique_ptr<CudaModule> module;
  std::unique_ptr<CudaModule> loop_module;  // null: no kernels that decide loops
  std::unique_ptr<CudaCompile> compile;     // null: no fused kernels
  std::unique_ptr<LtProducts> products;
  std::unique_ptr<DiskChoices> choices;  // null: nothing is measured
  std::unique_ptr<DnnLibrary> dnn;
  std::unique_ptr<LongLines> long_lines;
  KernelRegistry kernels;
  CudaDeviceKernels own;  // the device's
};

// A library that is there and gives no handle is done without; a lost device is not.
template <typename Library>
Status keep_library(Result<std::unique_ptr<Library>> made, Parts& parts,
                    std::unique_ptr<Library>& library) {
  if (made.is_ok()) {
    library = std::move(*made);
    return Status::ok();
  }
  EDDY_RETURN_IF_ERROR(parts.device->health());
  parts.own.notices.push_back(made.status().message() + "; our own kernels do its work");
  return Status::ok();
}

// Where they don't load (a GPU newer than the image), loops are driven from the host.
void load_loop_kernels(Parts& parts, const void* image) {
  if (image == nullptr) return;
  std::vector<std::string>& notices = parts.own.notices;
  Result<std::unique_ptr<CudaModule>> module =
      CudaModule::load(parts.device->context(), {&image, 1});
  if (!module.is_ok()) {
    notices.push_back("loops are driven from the host: " + module.status().message());
    return;
  }
  parts.loop_module = std::move(*module);
  const auto find = [&](const char* name) {
    Result<CudaFunction> function = parts.loop_module->find(name);
    if (!function.is_ok()) notices.push_back(function.status().message());
    return function.is_ok() ? static_cast<CuFunction>(const_cast<void*>(*function)) : nullptr;
  };
  parts.own.loop = {find("eddy_loop_step"), find("eddy_case_choice"), find("eddy_loop_copy")};
}

// For recordings of loops.
void let_launches_be_compiled(Parts& parts) {
  if (parts.compiler == nullptr || parts.own.loop.copy == nullptr) return;
  parts.own.loop.compile =
      [module = parts.module.get()](const cuda::KernelSource& source) -> Result<CuFunction> {
    EDDY_ASSIGN_OR_RETURN(const CudaFunction made, module->compile(source));
    return static_cast<CuFunction>(const_cast<void*>(static_cast<const void*>(made)));
  };
}

}  // namespace

Result<ExecutionDevice> make_cuda_device(const CudaSources& sources, const CudaOptions& options) {
  EDDY_CHECK(sources.api != nullptr) << "a device without a driver";
  auto parts = std::make_shared<Parts>();
  EDDY_ASSIGN_OR_RETURN(parts->device, CudaDevice::create(sources.api, options.device));
  if (sources.nvrtc_or_null != nullptr) {
    parts->compiler =
        std::make_unique<KernelCompiler>(sources.nvrtc_or_null, options.kernel_cache_folder);
  }
  EDDY_ASSIGN_OR_RETURN(parts->module, CudaModule::load(parts->device->context(), sources.images,
                                                        parts->compiler.get()));
  if (sources.cublas_lt_or_null != nullptr) {
    EDDY_RETURN_IF_ERROR(keep_library(LtProducts::create(sources.cublas_lt_or_null, *parts->module,
                                                         {.allows_tf32 = options.allows_tf32}),
                                      *parts, parts->products));
  }
  if (sources.cudnn_or_null != nullptr) {
    if (options.measures_convolutions && !options.kernel_cache_folder.empty()) {
      parts->choices = std::make_unique<DiskChoices>(options.kernel_cache_folder,
                                                     parts->device->context().facts().name);
    } else if (options.measures_convolutions) {
      parts->own.notices.push_back(
          "convolutions are not measured: there is no folder to keep the choices in; set HOME or "
          "XDG_CACHE_HOME");
    }
    EDDY_RETURN_IF_ERROR(keep_library(DnnLibrary::create(sources.cudnn_or_null, *parts->module,
                                                         {.allows_tf32 = options.allows_tf32,
                                                          .choices_or_null = parts->choices.get()}),
                                      *parts, parts->dnn));
  }
  const bool channels_last = options.channels_last.value_or(options.allows_tf32);
  if (options.channels_last.value_or(false) && parts->dnn == nullptr) {
    parts->own.notices.push_back(
        "channels do not come last: that is for cuDNN, which is not there");
  }
  if (sources.cub_or_null != nullptr) {
    parts->long_lines = std::make_unique<LongLines>(sources.cub_or_null, *parts->module);
  }
  add_cuda_kernels(parts->kernels, *parts->module,
                   {.products = parts->products.get(),
                    .dnn = parts->dnn.get(),
                    .long_lines = parts->long_lines.get()});
  for (const KernelEntry& each : options.kernels) {
    parts->kernels.add(in_context_of(*parts->module, each));
  }
  load_loop_kernels(*parts, sources.loop_image_or_null);
  add_cuda_transfers(parts->kernels, *parts->device);
  const Status early = allow_programmatic_launch(parts->device->context(),
                                                 parts->device->allocator(), parts->own.loop);
  EDDY_RETURN_IF_ERROR(parts->device->health());
  parts->own.why_plain_order = early.message();
  if (!early.is_ok() && early.code() != StatusCode::kUnsupported) {
    parts->own.notices.push_back("recorded kernels follow each other in plain order: " +
                                 early.message());
  }
  let_launches_be_compiled(*parts);
  if (parts->compiler != nullptr) parts->compile = std::make_unique<CudaCompile>(*parts->module);
  parts->own.compile_or_null = parts->compile.get();
  parts->own.why_no_compile = sources.why_no_nvrtc;
  if (const DnnLibrary* const dnn = parts->dnn.get(); dnn != nullptr) {
    parts->own.further_notices = [dnn] { return dnn->refusals(); };
  }
  parts->device->set_kernels(std::move(parts->own));
  return ExecutionDevice{std::shared_ptr<Device>(parts, parts->device.get()),
                         std::shared_ptr<const KernelRegistry>(parts, &parts->kernels),
                         channels_last && parts->dnn != nullptr};
}

std::optional<int> cuda_ordinal(std::string_view device) {
  if (device == "cuda") return 0;
  if (!device.starts_with("cuda:") || device.size() > 9) return std::nullopt;
  int ordinal = 0;
  const auto [end, error] =
      std::from_chars(device.data() + 5, device.data() + device.size(), ordinal);
  const bool is_number =
      error == std::errc() && end == device.data() + device.size() && device[5] != '-';
  return is_number ? std::optional(ordinal) : std::nullopt;
}

std::string early_launches_text(const ExecutionDevice& made) {
  const std::string& why = static_cast<const CudaDevice&>(*made.device).kernels().why_plain_order;
  return why.empty() ? "kernels of recordings begin early"
                     : "kernels of recordings follow each other in plain order: " + why;
}

Result<ExecutionDevice> make_cuda_device(const CudaOptions& options) {
  EDDY_ASSIGN_OR_RETURN(auto api, load_cuda_api());
  const std::vector<const void*> images = cuda_images();
  CudaSources sources{
      .api = std::move(api), .images = images, .loop_image_or_null = cuda_loop_image()};
  // Without the libraries our own kernels do.
  if (auto cublas_lt = load_cublas_lt(); cublas_lt.is_ok()) {
    sources.cublas_lt_or_null = std::move(*cublas_lt);
  }
  if (auto cudnn = load_cudnn(); cudnn.is_ok()) sources.cudnn_or_null = std::move(*cudnn);
  if (auto cub = load_cub(); cub.is_ok()) sources.cub_or_null = std::move(*cub);
  if (auto nvrtc = load_nvrtc(); nvrtc.is_ok()) {
    sources.nvrtc_or_null = std::move(*nvrtc);
  } else {
    sources.why_no_nvrtc = nvrtc.status().message();
  }
  return make_cuda_device(sources, options);
}

}  // namespace eddy
