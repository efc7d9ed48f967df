#include "ops/cuda/libraries/cudnn.h"

#include <array>

#include "ops/cuda/libraries/library_table.h"

namespace eddy {
namespace {

Result<std::shared_ptr<const CudnnApi>> load(std::span<const char* const> names) {
  return load_table<CudnnApi>(names, "no cuDNN, so Eddy's own kernels do its work; install cuDNN 9",
                              [](auto find, CudnnApi& api) {
#define EDDY_CUDNN_FIND(entry, symbol, ...) find(symbol, api.entry);
                                EDDY_CUDNN_CALLS(EDDY_CUDNN_FIND)
#undef EDDY_CUDNN_FIND
                              });
}

}  // namespace

Result<std::shared_ptr<const CudnnApi>> load_cudnn() {
  constexpr std::array kNames = {"libcudnn.so.9"};
  return load_once<CudnnApi>([&] { return load(kNames); });
}

Result<std::shared_ptr<const CudnnApi>> load_cudnn_from(const char* library) {
  return load({&library, 1});
}

}  // namespace eddy
