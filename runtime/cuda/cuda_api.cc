#include "runtime/cuda/cuda_api.h"

#include <dlfcn.h>

namespace eddy {
namespace {

// Fills `entry` with a plain function of the library; false when it has none of that name.
template <typename R, typename... Args>
bool find(void* library, const char* symbol, std::function<R(Args...)>& entry) {
  void* address = dlsym(library, symbol);
  if (address == nullptr) return false;
  entry = reinterpret_cast<R (*)(Args...)>(address);
  return true;
}

// The symbols that are required and missing; optional ones go to api.missing.
std::string fill(void* library, CudaApi& api) {
  std::string missing;
  const auto note = [&](bool is_found, bool is_required, const char* symbol) {
    if (is_found) return;
    if (!is_required) {
      api.missing.emplace_back(symbol);
    } else {
      missing += (missing.empty() ? "" : ", ") + std::string(symbol);
    }
  };
#define EDDY_CUDA_FIND(entry, symbol, is_required, ...) \
  note(find(library, symbol, api.entry), is_required, symbol);
  EDDY_CUDA_CALLS(EDDY_CUDA_FIND)
#undef EDDY_CUDA_FIND
  return missing;
}

}  // namespace

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Result<std::shared_ptr<const CudaApi>> load_cuda_api() {
  return load_cuda_api_from("libcuda.so.1");
}

Result<std::shared_ptr<const CudaApi>> load_cuda_api_from(const std::string& name) {
  // Never closed: a driver has threads of its own, which outlive the last table.
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = dlerror();
    return device_lost("no CUDA driver: " + std::string(reason != nullptr ? reason : name) +
                       "; install NVIDIA's driver, or run on the CPU");
  }
  auto api = std::make_shared<CudaApi>();
  const std::string missing = fill(library, *api);
  if (!missing.empty()) {
    return device_lost("the CUDA driver " + name + " is too old or none: it lacks " + missing +
                       "; install a driver for CUDA 12 or newer");
  }
  const CuResult result = api->init(0);
  if (result != CuResult::kSuccess) {
    const char* text = nullptr;
    api->error_string(result, &text);
    return device_lost("the CUDA driver " + name +
                       " does not start: " + (text != nullptr ? text : "error ") +
                       (text != nullptr ? "" : std::to_string(static_cast<int>(result))));
  }
  return std::shared_ptr<const CudaApi>(std::move(api));
}

}  // namespace eddy
