#include "runtime/cuda/cuda_launch.h"

#include "graph/base/check.h"

namespace eddy {
namespace {

bool is_capturing(const CudaApi& api, CuStream stream) {
  CuCaptureStatus status = CuCaptureStatus::kNone;
  return api.stream_is_capturing(stream, &status) == CuResult::kSuccess &&
         status == CuCaptureStatus::kActive;
}

}  // namespace

Status launch_grid(CudaContext& context, CuFunction function, uint32_t num_blocks,
                   uint32_t num_threads, const void* params, CuStream stream) {
  EDDY_DCHECK(function != nullptr && params != nullptr) << "no kernel, or none of its parameters";
  EDDY_DCHECK(num_blocks > 0) << "a grid of no blocks";
  EDDY_DCHECK(num_threads > 0 && num_threads <= 1024) << "a block of " << num_threads << " threads";
  const CudaApi& api = context.api();
  context.count_launches(1);
  const uint32_t* guard = context.launch_guards().take(stream);
  // The driver's interface only lacks the const. Kernels of one parameter leave the second be.
  void* values[] = {const_cast<void*>(params), &guard};
  const bool may_begin_early = context.is_programmatic() && !context.plain_order().has(stream);
  if (!may_begin_early || !is_capturing(api, stream)) {
    return context.check(api.launch_kernel(function, num_blocks, 1, 1, num_threads, 1, 1, 0, stream,
                                           values, nullptr),
                         "cuLaunchKernel");
  }
  CuLaunchAttribute programmatic{.id = kCuLaunchProgrammatic, .value = 1};
  const CuLaunchConfig config{.grid_x = num_blocks,
                              .block_x = num_threads,
                              .stream = stream,
                              .attributes = &programmatic,
                              .num_attributes = 1};
  return context.check(api.launch_kernel_ex(&config, function, values, nullptr),
                       "cuLaunchKernelEx");
}

}  // namespace eddy
