#include "tests/ops/cuda/host/host_launcher.h"

#include <numeric>
#include <utility>
#include <vector>

#include "ops/cuda/device/unary_ops.h"
#include "ops/cuda/elementwise/elementwise_inl.h"
#include "ops/cuda/images/loop_control.h"
#include "ops/cuda/names/kernel_list.h"
#include "ops/cuda/reduce/row_inl.h"
#include "ops/cuda/text/persistent_text.h"
#include "tests/ops/cuda/host/host_kernels.h"

namespace eddy::testing {

void add_elementwise_host_kernels(HostKernels& kernels) {
  using namespace cuda;  // the types of the list
#define EDDY_HOST_BINARY(op, type) \
  EDDY_HOST_THREADS(op##_##type, ElementwiseParams, run_binary<op, type, type>)
#define EDDY_HOST_COMPARE(op, type) \
  EDDY_HOST_THREADS(op##_##type, ElementwiseParams, run_binary<op, bool, type>)
#define EDDY_HOST_UNARY(op, type) \
  EDDY_HOST_THREADS(op##_##type, ElementwiseParams, run_unary<op, type, type>)
#define EDDY_HOST_WORDS(size, word)                                   \
  EDDY_HOST_THREADS(Where_##size, ElementwiseParams, run_where<word>) \
  EDDY_HOST_THREADS(Copy_##size, ElementwiseParams, run_copy<word>)
#define EDDY_HOST_REDUCE(op, type) EDDY_HOST_THREADS(op##_##type, RowParams, run_reduce<op, type>)
#define EDDY_HOST_EXTREME(op, type) EDDY_HOST_THREADS(op##_##type, RowParams, run_extreme<op, type>)
#define EDDY_HOST_ARG(op, type) EDDY_HOST_THREADS(op##_##type, RowParams, run_arg<op, type>)
#define EDDY_HOST_SOFTMAX(op, type) EDDY_HOST_THREADS(op##_##type, RowParams, run_softmax<op, type>)
  EDDY_CUDA_KERNELS(EDDY_HOST)
  EDDY_CUDA_ROWS(EDDY_HOST)
}

HostKernels host_kernels() {
  HostKernels kernels;
  add_activation_host_kernels(kernels);
  add_elementwise_host_kernels(kernels);
  add_movement_host_kernels(kernels);
  add_line_host_kernels(kernels);
  add_product_host_kernels(kernels);
  return kernels;
}

void run_row_kernel(const std::string& name, const cuda::RowParams& rows) {
  static const HostKernels* const kernels = new HostKernels(host_kernels());
  const char* const group = rows.length >= cuda::kLongRow       ? "Block"
                            : rows.length >= cuda::kMiddlingRow ? "Warp"
                                                                : "";
  const HostKernel& kernel = kernels->at(std::string("eddy_") + group + name);
  *group != '\0' ? kernel.run_block(&rows, 0, 1) : kernel.run_thread(&rows, 0, 1);
}

void run_host_kernel(const HostKernel& kernel, uint32_t num_blocks, const void* params,
                     Random& random, const std::function<bool()>& next_round) {
  if (kernel.loop_or_null != nullptr) {
    return kernel.loop_or_null->run(*static_cast<const cuda::LoopParams*>(params), next_round);
  }
  std::vector<uint32_t> blocks(num_blocks);
  std::iota(blocks.begin(), blocks.end(), 0u);
  for (uint32_t i = num_blocks; i > 1; --i) std::swap(blocks[i - 1], blocks[random.below(i)]);
  const uint64_t step = uint64_t{num_blocks} * cuda::kBlockThreads;
  for (uint32_t block : blocks) {
    if (kernel.run_block != nullptr) {
      kernel.run_block(params, block, num_blocks);
      continue;
    }
    for (uint64_t thread = 0; thread < cuda::kBlockThreads; ++thread) {
      const uint64_t first = uint64_t{block} * cuda::kBlockThreads + thread;
      if (kernel.fused_or_null != nullptr) {
        kernel.fused_or_null->run(*static_cast<const cuda::FusedParams*>(params), first, step);
        continue;
      }
      kernel.run_thread(params, first, step);
    }
  }
}

Result<CudaFunction> HostLauncher::find(std::string_view name) {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) return unsupported("no kernel " + std::string(name));
  return CudaFunction(&found->second);
}

Result<HostKernel> host_kernel_of(const std::string& source) {
  if (source.starts_with("// loop copy\n")) {
    HostKernel kernel;
    kernel.params_bytes = sizeof(cuda::LoopCopyParams);
    kernel.is_loop_copy = true;
    return kernel;
  }
  if (LoopInterpreter::is_loop(source)) {
    EDDY_ASSIGN_OR_RETURN(LoopInterpreter loop, LoopInterpreter::read(source, run_row_kernel));
    HostKernel kernel;
    kernel.params_bytes = sizeof(cuda::LoopParams);
    kernel.loop_or_null = std::make_shared<const LoopInterpreter>(std::move(loop));
    return kernel;
  }
  EDDY_ASSIGN_OR_RETURN(FusedInterpreter fused, FusedInterpreter::read(source));
  HostKernel kernel;
  kernel.params_bytes = sizeof(cuda::FusedParams);
  kernel.fused_or_null = std::make_shared<const FusedInterpreter>(std::move(fused));
  return kernel;
}

Result<CudaFunction> HostLauncher::compile(const cuda::KernelSource& source) {
  EDDY_ASSIGN_OR_RETURN(HostKernel kernel, host_kernel_of(source.text));
  return CudaFunction(&(kernels_[source.name] = std::move(kernel)));
}

std::string HostLauncher::last_launched() const {
  for (const auto& [name, kernel] : kernels_) {
    if (last_launched_ == &kernel) return name;
  }
  return "";
}

Status HostLauncher::launch(CudaFunction function, uint32_t num_blocks, const void* params,
                            NativeStream) {
  ++num_launches_;
  last_launched_ = function;
  run_host_kernel(*static_cast<const HostKernel*>(function), num_blocks, params, random_);
  return Status::ok();
}

}  // namespace eddy::testing
