#include "ops/cuda/libraries/cublas_lt.h"

#include <array>

#include "ops/cuda/libraries/library_table.h"

namespace eddy {
namespace {

Result<std::shared_ptr<const CublasLtApi>> load(std::span<const char* const> names) {
  return load_table<CublasLtApi>(
      names,
      "no cuBLASLt, so products run on Eddy's own kernels; install libcublas for CUDA 12 or 13",
      [](auto find, CublasLtApi& api) {
#define EDDY_CUBLAS_LT_FIND(entry, symbol, ...) find(symbol, api.entry);
        EDDY_CUBLAS_LT_CALLS(EDDY_CUBLAS_LT_FIND)
#undef EDDY_CUBLAS_LT_FIND
      });
}

}  // namespace

Result<std::shared_ptr<const CublasLtApi>> load_cublas_lt() {
  constexpr std::array kNames = {"libcublasLt.so.13", "libcublasLt.so.12"};
  return load_once<CublasLtApi>([&] { return load(kNames); });
}

Result<std::shared_ptr<const CublasLtApi>> load_cublas_lt_from(const char* library) {
  return load({&library, 1});
}

}  // namespace eddy
