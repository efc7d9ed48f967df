#include "tests/ops/cuda/host_launcher.h"

#include <numeric>
#include <utility>
#include <vector>

#include "ops/cuda/elementwise_inl.h"
#include "ops/cuda/kernel_list.h"

namespace eddy::testing {

std::map<std::string, HostKernel, std::less<>> host_kernels() {
  using namespace cuda;  // the types of the list
  return {
#define EDDY_HOST_BINARY(op, type) {"eddy_" #op "_" #type, run_binary<op, type, type>},
#define EDDY_HOST_COMPARE(op, type) {"eddy_" #op "_" #type, run_binary<op, bool, type>},
#define EDDY_HOST_UNARY(op, type) {"eddy_" #op "_" #type, run_unary<op, type>},
#define EDDY_HOST_WORDS(size, word) \
  {"eddy_Where_" #size, run_where<word>}, {"eddy_Copy_" #size, run_copy<word>},
      EDDY_CUDA_KERNELS(EDDY_HOST)};
}

void run_host_kernel(HostKernel kernel, uint32_t num_blocks, const cuda::ElementwiseParams& params,
                     Random& random) {
  std::vector<uint32_t> blocks(num_blocks);
  std::iota(blocks.begin(), blocks.end(), 0u);
  for (uint32_t i = num_blocks; i > 1; --i) std::swap(blocks[i - 1], blocks[random.below(i)]);
  const uint64_t step = uint64_t{num_blocks} * cuda::kBlockThreads;
  for (uint32_t block : blocks) {
    for (uint64_t thread = 0; thread < cuda::kBlockThreads; ++thread) {
      kernel(params, uint64_t{block} * cuda::kBlockThreads + thread, step);
    }
  }
}

Result<CudaFunction> HostLauncher::find(std::string_view name) {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) return unsupported("no kernel " + std::string(name));
  return CudaFunction(&found->second);
}

Status HostLauncher::launch(CudaFunction function, uint32_t num_blocks, const void* params,
                            NativeStream) {
  ++num_launches_;
  run_host_kernel(*static_cast<const HostKernel*>(function), num_blocks,
                  *static_cast<const cuda::ElementwiseParams*>(params), random_);
  return Status::ok();
}

}  // namespace eddy::testing
