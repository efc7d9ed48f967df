#include "ops/cuda/reduce/cub.h"

#include "ops/cuda/reduce/cub_entries.h"

namespace eddy {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_not(const cuda::CubRuntime& runtime) {
  if (runtime.driver_version == 0) return "there is no CUDA driver";
  if (runtime.driver_version < runtime.runtime_version) {
    return "it was compiled for CUDA " + version_text(runtime.runtime_version) +
           ", and the driver knows CUDA " + version_text(runtime.driver_version) +
           "; install a newer driver";
  }
  return cuda::cub_error_text(runtime.status);
}

}  // namespace

Result<std::shared_ptr<const CubApi>> load_cub() {
  const cuda::CubRuntime runtime = cuda::cub_runtime();
  if (runtime.status != 0) {
    return unsupported("no CUB, so long lines run on Eddy's own kernels: " + why_not(runtime));
  }
  return std::make_shared<const CubApi>(CubApi{.sum = cuda::cub_sum,
                                               .extreme = cuda::cub_extreme,
                                               .cum_sum = cuda::cub_cum_sum,
                                               .top_k = cuda::cub_top_k,
                                               .error_text = cuda::cub_error_text,
                                               .version = cuda::cub_version});
}

}  // namespace eddy
