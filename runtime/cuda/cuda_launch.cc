#include "runtime/cuda/cuda_launch.h"

#include "ops/cuda/images/loop_control.h"
#include "runtime/cuda/cuda_recorder.h"
#include "runtime/cuda/pinned_words.h"

namespace eddy {
namespace {

bool is_collecting(const CudaApi& api, CuStream stream) {
  CuCaptureStatus status = CuCaptureStatus::kNone;
  return api.stream_is_capturing(stream, &status) == CuResult::kSuccess &&
         status == CuCaptureStatus::kActive;
}

// Of any kind: it is recorded and never runs.
Status record_kernel(CudaContext& context, const CudaLoopKernels& kernels, CudaRecorder& recorder,
                     uint32_t lane) {
  EDDY_ASSIGN_OR_RETURN(void* const native, recorder.lane(lane));
  const cuda::LoopStepParams params{};
  const CudaContext::Use use(context);
  return launch_grid(context, kernels.step, 1, 1, &params, static_cast<CuStream>(native));
}

// Recordings with every neighbour that a kernel has in those of programs: kernels of its lane
// and, at a fork and a join, of others; copies; conditional nodes, before, behind and around it.
class Probe {
 public:
  Probe(CudaContext& context, const CudaLoopKernels& kernels, CudaRecorder& recorder,
        const PinnedWord& word)
      : context_(context), kernels_(kernels), recorder_(recorder), word_(word) {}

  Status record() {
    EDDY_RETURN_IF_ERROR(recorder_.begin());
    EDDY_RETURN_IF_ERROR(record_straight());
    EDDY_RETURN_IF_ERROR(recorder_.begin_while({}));
    EDDY_RETURN_IF_ERROR(record_straight());
    EDDY_RETURN_IF_ERROR(record_case(CaseChoice::Type::kBool, 2));
    EDDY_RETURN_IF_ERROR(record_case(CaseChoice::Type::kInt32, 3));
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_RETURN_IF_ERROR(record_straight());
    EDDY_RETURN_IF_ERROR(recorder_.end_while());
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_RETURN_IF_ERROR(kernel(0));
    return recorder_.finish().status();
  }

 private:
  Status kernel(uint32_t lane) { return record_kernel(context_, kernels_, recorder_, lane); }

  // A chain, a copy between kernels, two lanes that part and meet.
  Status record_straight() {
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_ASSIGN_OR_RETURN(void* const native, recorder_.lane(0));
    EDDY_RETURN_IF_ERROR(recorder_.copy_now(native, word_.host + 1, word_.host, sizeof(uint32_t)));
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_ASSIGN_OR_RETURN(const uint32_t parted, recorder_.mark(0));
    EDDY_RETURN_IF_ERROR(recorder_.follow(1, parted));
    EDDY_RETURN_IF_ERROR(kernel(1));
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_ASSIGN_OR_RETURN(const uint32_t met, recorder_.mark(1));
    EDDY_RETURN_IF_ERROR(recorder_.follow(0, met));
    return kernel(0);
  }

  Status record_case(CaseChoice::Type type, uint32_t num_branches) {
    CaseChoice choice;
    choice.type = type;
    EDDY_RETURN_IF_ERROR(recorder_.begin_case(choice, num_branches));
    for (uint32_t branch = 0; branch < num_branches; ++branch) {
      EDDY_RETURN_IF_ERROR(recorder_.begin_branch());
      EDDY_RETURN_IF_ERROR(kernel(0));
      EDDY_RETURN_IF_ERROR(kernel(0));
    }
    return recorder_.end_case();
  }

  CudaContext& context_;
  const CudaLoopKernels& kernels_;
  CudaRecorder& recorder_;
  const PinnedWord word_;
};

}  // namespace

Status launch_grid(CudaContext& context, CuFunction function, uint32_t num_blocks,
                   uint32_t num_threads, const void* params, CuStream stream) {
  const CudaApi& api = context.api();
  context.count_launches(1);
  const uint32_t* guard = context.launch_guards().take(stream);
  // The driver's interface only lacks the const. Kernels of one parameter leave the second be.
  void* values[] = {const_cast<void*>(params), &guard};
  if (!context.is_programmatic() || !is_collecting(api, stream)) {
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

Status allow_programmatic_launch(CudaContext& context, const CudaLoopKernels& kernels) {
  if (!context.facts().has_programmatic) return unsupported("the device or its driver has no such");
  const auto recorder = CudaRecorder::create_or_null(context, kernels);
  if (recorder == nullptr || !recorder->can_decide()) {
    return unsupported("the device or its driver cannot decide loops by itself");
  }
  PinnedWords words(context);
  EDDY_ASSIGN_OR_RETURN(const PinnedWord word, words.acquire());
  context.set_programmatic(true);
  Status status = Probe(context, kernels, *recorder, word).record();
  if (!status.is_ok()) {
    context.set_programmatic(false);
    recorder->abandon();
  }
  words.release(word);
  return status;
}

}  // namespace eddy
