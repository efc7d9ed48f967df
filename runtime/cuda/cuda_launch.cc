#include "runtime/cuda/cuda_launch.h"

#include "runtime/cuda/cuda_recorder.h"

namespace eddy {
namespace {

bool is_collecting(const CudaApi& api, CuStream stream) {
  CuCaptureStatus status = CuCaptureStatus::kNone;
  return api.stream_is_capturing(stream, &status) == CuResult::kSuccess &&
         status == CuCaptureStatus::kActive;
}

// Kernels behind kernels, in a loop's body and behind the loop.
Status record_chain(CudaRecorder& recorder) {
  EDDY_RETURN_IF_ERROR(recorder.begin());
  EDDY_RETURN_IF_ERROR(recorder.start_counter({}));
  EDDY_RETURN_IF_ERROR(recorder.begin_while({}));
  EDDY_RETURN_IF_ERROR(recorder.advance_counter({}));
  EDDY_RETURN_IF_ERROR(recorder.end_while());
  EDDY_RETURN_IF_ERROR(recorder.start_counter({}));
  return recorder.finish().status();
}

}  // namespace

Status launch_grid(CudaContext& context, CuFunction function, uint32_t num_blocks,
                   uint32_t num_threads, const void* params, CuStream stream) {
  const CudaApi& api = context.api();
  const uint32_t* guard = context.launch_guards().take(stream);
  // The driver's interface only lacks the const. Kernels of one parameter leave the second be.
  void* values[] = {const_cast<void*>(params), &guard};
  if (!context.is_programmatic() || !is_collecting(api, stream)) {
    return context.check(api.launch_kernel(function, num_blocks, 1, 1, num_threads, 1, 1, 0,
                                           stream, values, nullptr),
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

void allow_programmatic_launch(CudaContext& context, const CudaLoopKernels& kernels) {
  if (!context.facts().has_programmatic) return;
  const auto recorder = CudaRecorder::create_or_null(context, kernels);
  if (recorder == nullptr || !recorder->can_decide()) return;
  context.set_programmatic(true);
  if (!record_chain(*recorder).is_ok()) context.set_programmatic(false);
}

}  // namespace eddy
