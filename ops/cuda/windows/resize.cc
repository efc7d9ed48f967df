// The host's half of Resize.
#include "ops/cuda/launch/launch.h"
#include "ops/reference/windows/resize_call.h"

namespace eddy {
namespace {

using cuda::ResizeParams;

struct CudaResizeState : ResizeState {
  cuda::LaunchState launch;
};

bool run_resize(const KernelArgs& args) {
  const auto& state = static_cast<const CudaResizeState&>(*args.state);
  const TensorView& y = args.outputs[0];
  if (y.count() == 0) return true;
  ResizeCall call;
  // Scales and sizes are host values.
  Status status = make_resize_call(args, call);
  if (!status.is_ok()) return args.fail(std::move(status));
  ResizeParams p{};
  p.out = y.data;
  p.in = args.inputs[0].data;
  p.count = cuda::count_of(y);
  p.rank = call.rank;
  p.mode = static_cast<int32_t>(call.rules.mode);
  p.coordinates = static_cast<int32_t>(call.rules.coordinates);
  p.rounding = static_cast<int32_t>(call.rules.rounding);
  p.excludes_outside = call.rules.excludes_outside ? 1 : 0;
  p.antialiases = call.rules.antialiases ? 1 : 0;
  p.cubic_coefficient = call.rules.cubic_coefficient;
  p.extrapolation = call.rules.extrapolation_value;
  int64_t stride = 1;
  for (int d = call.rank - 1; d >= 0; --d) {
    const auto at = static_cast<size_t>(d);
    const ResizeAxis& axis = call.axes[at];
    p.axes[d] = {axis.input,
                 axis.output,
                 stride,
                 axis.scale,
                 axis.roi_begin,
                 axis.roi_end,
                 call.is_resized[at] ? axis.num_taps(call.rules) : 0};
    stride *= axis.input;
  }
  return cuda::launch_threads(args, *state.launch.launcher, state.launch.function, p.count, p);
}

Result<BoundKernel> bind_resize(const KernelInit& init, CudaLauncher& launcher) {
  if (init.attributes.get_string("coordinate_transformation_mode", "half_pixel") ==
      "tf_crop_and_resize") {
    return unsupported("tf_crop_and_resize has no CUDA kernel: its region is read on the host");
  }
  auto state = std::make_unique<CudaResizeState>();
  EDDY_RETURN_IF_ERROR(
      cuda::find_typed_kernel(init, launcher, "Resize_" + cuda::input_suffix(init), state->launch));
  state->attributes = init.attributes;
  state->since_version = init.op.since_version;
  return cuda::bound(run_resize, std::move(state));
}

}  // namespace

void add_resize_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  cuda::add_kernel(registry, launcher, "Resize", bind_resize);
}

}  // namespace eddy
