#include "runtime/cuda/cuda_transfers.h"

#include <algorithm>
#include <cstring>

#include "graph/base/check.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/images/loop_control.h"
#include "runtime/cuda/cuda_launch.h"
#include "runtime/device/no_waiting.h"

namespace eddy {
namespace {

struct TransferState : KernelState {
  CudaDevice* device = nullptr;
};

// Staging memory for larger tensors comes in pieces.
constexpr size_t kStagingBytes = size_t{16} << 20;
static_assert(kMostBytesAtOnce <= kStagingBytes, "what is copied at once is one piece");

// What the shape rules of both operators say.
void check_transfer(const KernelArgs& args) {
  EDDY_DCHECK(args.num_inputs == 1 && args.num_outputs == 1 && args.state != nullptr)
      << args.num_inputs << " inputs and " << args.num_outputs << " outputs";
  EDDY_DCHECK(args.inputs[0].element == args.outputs[0].element &&
              args.inputs[0].count() == args.outputs[0].count())
      << "a copy of another size";
}
Status enqueue(CudaDevice& device, NativeStream stream, void* to, const void* from,
               size_t size_bytes) {
  CudaContext& context = device.context();
  context.count_launches(1);
  const CudaContext::Use use(context);
  return context.check(context.api().copy(reinterpret_cast<CuDevicePointer>(to),
                                          reinterpret_cast<CuDevicePointer>(from), size_bytes,
                                          static_cast<CuStream>(stream)),
                       "cuMemcpyAsync");
}

Status stage(CudaDevice& device, NativeStream stream, char* to, const char* from,
             size_t size_bytes) {
  for (size_t at = 0; at < size_bytes; at += kStagingBytes) {
    const size_t piece_bytes = std::min(kStagingBytes, size_bytes - at);
    EDDY_ASSIGN_OR_RETURN(const BufferRef piece, device.staging().allocate(piece_bytes));
    std::memcpy(piece.data(), from + at, piece_bytes);
    EDDY_RETURN_IF_ERROR(enqueue(device, stream, to + at, piece.data(), piece_bytes));
  }
  return Status::ok();
}

bool is_one_number(size_t size_bytes) {
  return size_bytes == sizeof(bool) || size_bytes == sizeof(int32_t) ||
         size_bytes == sizeof(int64_t);
}

// A number by the launch of a kernel that has it in its parameters: no staging memory, no engine.
Status set_number(CudaDevice& device, NativeStream stream, void* to, const void* from,
                  size_t size_bytes) {
  cuda::LoopCopyParams params{};
  params.num_scalars = 1;
  cuda::ScalarStepParams& step = params.scalars[0];
  step.op = cuda::ScalarOp::kSet;
  step.type = size_bytes == sizeof(bool)      ? cuda::ScalarType::k_b8
              : size_bytes == sizeof(int32_t) ? cuda::ScalarType::k_i32
                                              : cuda::ScalarType::k_i64;
  std::memcpy(&step.in[0], from, size_bytes);
  step.out = to;
  CudaContext& context = device.context();
  const CudaContext::Use use(context);
  return launch_grid(context, device.kernels().loop.copy, 1, 1, &params,
                     static_cast<CuStream>(stream));
}

bool run_to_device(const KernelArgs& args) {
  check_transfer(args);
  CudaDevice& device = *static_cast<const TransferState*>(args.state)->device;
  const TensorView& from = args.inputs[0];
  void* const to = args.outputs[0].data;
  const size_t size_bytes = from.size_bytes();
  if (size_bytes == 0) return true;
  const bool is_seen =
      device.is_staging(from.data, size_bytes) || device.is_device_memory(from.data);  // a caller's
  if (!is_seen && size_bytes > kMostBytesAtOnce && NoWaiting::refuses()) {
    return args.fail(resource_exhausted("a large copy takes long"));
  }
  const bool by_kernel = is_one_number(size_bytes) && device.can_copy_words();
  Status status = by_kernel && is_seen
                      ? device.copy_by_kernel(to, from.data, size_bytes, args.stream)
                  : by_kernel ? set_number(device, args.stream, to, from.data, size_bytes)
                  : is_seen   ? enqueue(device, args.stream, to, from.data, size_bytes)
                              : stage(device, args.stream, static_cast<char*>(to),
                                      static_cast<const char*>(from.data), size_bytes);
  return status.is_ok() || args.fail(std::move(status));
}

bool run_to_host(const KernelArgs& args) {
  check_transfer(args);
  CudaDevice& device = *static_cast<const TransferState*>(args.state)->device;
  const TensorView& from = args.inputs[0];
  void* const to = args.outputs[0].data;
  const size_t size_bytes = from.size_bytes();
  if (size_bytes == 0) return true;
  if (!device.is_staging(to, size_bytes)) {
    // A caller's, bound for what only leaves; perhaps of another GPU.
    if (!device.is_device_memory(to)) {
      return args.fail(invalid_argument("the memory bound for an output is not the GPU's"));
    }
    Status status = enqueue(device, args.stream, to, from.data, size_bytes);
    return status.is_ok() || args.fail(std::move(status));
  }
  const bool by_kernel = device.can_copy_words() && size_bytes <= kMostBytesByKernel;
  Status status = by_kernel ? device.copy_last_by_kernel(to, from.data, size_bytes, args.stream)
                            : enqueue(device, args.stream, to, from.data, size_bytes);
  return status.is_ok() || args.fail(std::move(status));
}

}  // namespace

void add_cuda_transfers(KernelRegistry& registry, CudaDevice& device) {
  const auto add = [&](std::string_view op, KernelFunction run) {
    const auto bind = [run, &device](const KernelInit& init) -> Result<BoundKernel> {
      EDDY_CHECK(init.inputs.size() == 1) << init.inputs.size() << " inputs of a copy";
      if (init.inputs[0].tensor.element == ElementType::kString) {
        return unsupported("strings can't live in a GPU's memory");
      }
      auto state = std::make_unique<TransferState>();
      state->device = &device;
      BoundKernel kernel;
      kernel.run = run;
      kernel.state = std::move(state);
      return kernel;
    };
    registry.add({.op = op, .bind = bind, .provider = "cuda", .domain = "eddy"});
  };
  add("ToDevice", run_to_device);
  add("ToHost", run_to_host);
}

}  // namespace eddy
