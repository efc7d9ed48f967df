#include "runtime/cuda/programmatic_launch.h"

#include "ops/cuda/images/loop_control.h"
#include "runtime/cuda/cuda_launch.h"

namespace eddy {
namespace {

// Of any kind: it is recorded and never runs.
Status record_kernel(CudaContext& context, const CudaLoopKernels& kernels,
                     CudaGraphCapture& capture, uint32_t stream) {
  EDDY_ASSIGN_OR_RETURN(void* const native, capture.stream(stream));
  const cuda::LoopStepParams params{};
  const CudaContext::Use use(context);
  return launch_grid(context, kernels.step, 1, 1, &params, static_cast<CuStream>(native));
}

// Graphs with every neighbour that a kernel has in those of programs: kernels of its stream
// and, at a fork and a join, of others; copies; conditional nodes, before, behind and around it.
class Probe {
 public:
  // `numbers`: two, in device memory. No program copies within host memory, and a driver may
  // refuse that where it takes all that programs have.
  Probe(CudaContext& context, const CudaLoopKernels& kernels, CudaGraphCapture& capture,
        uint32_t* numbers)
      : context_(context), kernels_(kernels), capture_(capture), numbers_(numbers) {}

  Status record() {
    EDDY_RETURN_IF_ERROR(capture_.begin());
    EDDY_RETURN_IF_ERROR(record_straight());
    EDDY_RETURN_IF_ERROR(capture_.begin_while({}));
    EDDY_RETURN_IF_ERROR(record_straight());
    EDDY_RETURN_IF_ERROR(record_case(CaseChoice::Type::kBool, 2));
    EDDY_RETURN_IF_ERROR(record_case(CaseChoice::Type::kInt32, 3));
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_RETURN_IF_ERROR(record_straight());
    EDDY_RETURN_IF_ERROR(capture_.end_while());
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_RETURN_IF_ERROR(kernel(0));
    return capture_.finish().status();
  }

 private:
  Status kernel(uint32_t stream) { return record_kernel(context_, kernels_, capture_, stream); }

  // A chain, a copy between kernels, two streams that part and meet.
  Status record_straight() {
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_ASSIGN_OR_RETURN(void* const native, capture_.stream(0));
    EDDY_RETURN_IF_ERROR(capture_.copy_now(native, numbers_ + 1, numbers_, sizeof(uint32_t)));
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_ASSIGN_OR_RETURN(const uint32_t parted, capture_.record(0));
    EDDY_RETURN_IF_ERROR(capture_.wait(1, parted));
    EDDY_RETURN_IF_ERROR(kernel(1));
    EDDY_RETURN_IF_ERROR(kernel(0));
    EDDY_ASSIGN_OR_RETURN(const uint32_t met, capture_.record(1));
    EDDY_RETURN_IF_ERROR(capture_.wait(0, met));
    return kernel(0);
  }

  Status record_case(CaseChoice::Type type, uint32_t num_branches) {
    CaseChoice choice;
    choice.type = type;
    EDDY_RETURN_IF_ERROR(capture_.begin_case(choice, num_branches));
    for (uint32_t branch = 0; branch < num_branches; ++branch) {
      EDDY_RETURN_IF_ERROR(capture_.begin_branch());
      EDDY_RETURN_IF_ERROR(kernel(0));
      EDDY_RETURN_IF_ERROR(kernel(0));
    }
    return capture_.end_case();
  }

  CudaContext& context_;
  const CudaLoopKernels& kernels_;
  CudaGraphCapture& capture_;
  uint32_t* const numbers_;
};

}  // namespace

Status allow_programmatic_launch(CudaContext& context, Allocator& memory,
                                 const CudaLoopKernels& kernels) {
  if (!context.facts().has_programmatic) return unsupported("the device or its driver has no such");
  const auto capture = CudaGraphCapture::create_or_null(context, kernels);
  if (capture == nullptr || !capture->can_decide()) {
    return unsupported("the device or its driver cannot decide loops by itself");
  }
  EDDY_ASSIGN_OR_RETURN(const BufferRef numbers, memory.allocate(2 * sizeof(uint32_t)));
  context.set_programmatic(true);
  Status status =
      Probe(context, kernels, *capture, static_cast<uint32_t*>(numbers.data())).record();
  if (!status.is_ok()) {
    context.set_programmatic(false);
    capture->abandon();
  }
  return status;
}

}  // namespace eddy
