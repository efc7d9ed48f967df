#include "ops/cuda/compiled/nvrtc.h"

#include <array>

#include "ops/cuda/libraries/library_table.h"

namespace eddy {
namespace {

Result<std::shared_ptr<const NvrtcApi>> load(std::span<const char* const> names) {
  return load_table<NvrtcApi>(
      names, "no NVRTC, so elementwise nodes are not fused; install libnvrtc for CUDA 12 or 13",
      [](auto find, NvrtcApi& api) {
#define EDDY_NVRTC_FIND(entry, symbol, ...) find(symbol, api.entry);
        EDDY_NVRTC_CALLS(EDDY_NVRTC_FIND)
#undef EDDY_NVRTC_FIND
      });
}

}  // namespace

Result<std::shared_ptr<const NvrtcApi>> load_nvrtc() {
  constexpr std::array kNames = {"libnvrtc.so.13", "libnvrtc.so.12"};
  return load(kNames);
}

Result<std::shared_ptr<const NvrtcApi>> load_nvrtc_from(const char* library) {
  return load({&library, 1});
}

}  // namespace eddy
