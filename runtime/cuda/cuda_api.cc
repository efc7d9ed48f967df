#include "runtime/cuda/cuda_api.h"

#include <dlfcn.h>

namespace eddy {
namespace {

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

// The table together with the library its entries point into. The table goes first.
struct LoadedApi {
  Library library;
  CudaApi api;
};

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
  Library library(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) {
    const char* reason = dlerror();
    return device_lost("no CUDA driver: " + std::string(reason != nullptr ? reason : name) +
                       "; install NVIDIA's driver, or run on the CPU");
  }
  auto loaded = std::make_shared<LoadedApi>();
  const std::string missing = fill(library.get(), loaded->api);
  if (!missing.empty()) {
    return device_lost("the CUDA driver " + name + " is too old or none: it lacks " + missing +
                       "; install a driver for CUDA 12 or newer");
  }
  loaded->library = std::move(library);
  const CuResult result = loaded->api.init(0);
  if (result != CuResult::kSuccess) {
    const char* text = nullptr;
    loaded->api.error_string(result, &text);
    return device_lost("the CUDA driver " + name +
                       " does not start: " + (text != nullptr ? text : "error ") +
                       (text != nullptr ? "" : std::to_string(static_cast<int>(result))));
  }
  const CudaApi* api = &loaded->api;
  return std::shared_ptr<const CudaApi>(std::move(loaded), api);
}

}  // namespace eddy
