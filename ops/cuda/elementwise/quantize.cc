// The host's half of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, for bytes.
#include "ops/reference/elementwise/quantize.h"
#include "ops/cuda/launch/launch.h"
#include "ops/reference/parts/outputs.h"

namespace eddy {
namespace {

using cuda::QuantizeParams;

struct QuantizeState : cuda::LaunchState {
  CudaFunction extremes = nullptr;  // DynamicQuantizeLinear's first launch
  int64_t axis = 1;
  int64_t block_size = 0;
};

const QuantizeState& state_of(const KernelArgs& args) {
  return *static_cast<const QuantizeState*>(args.state);
}

bool run_by_scale(const KernelArgs& args) {
  const QuantizeState& state = state_of(args);
  const TensorView &x = args.inputs[0], &scale = args.inputs[1];
  const ScaleMap map = ScaleMap::of(x, scale, state.axis, state.block_size);
  QuantizeParams p{};
  p.out = args.outputs[0].data;
  p.in = x.data;
  p.scale = scale.data;
  p.zero = args.has_input(2) ? args.inputs[2].data : nullptr;
  p.count = cuda::count_of(x);
  p.axis = static_cast<uint64_t>(map.count);
  p.inner = static_cast<uint64_t>(map.inner);
  p.block_size = map.block_size;
  p.outer_step = map.outer_step;
  p.block_step = map.block_step;
  p.inner_step = map.inner_step;
  return cuda::launch_threads(args, *state.launcher, state.function, p.count, p);
}

bool run_dynamic(const KernelArgs& args) {
  const QuantizeState& state = state_of(args);
  constexpr uint64_t kMostPairs = 256;  // each thread of the second launch reads them all
  QuantizeParams p{};
  p.out = args.outputs[0].data;
  p.in = args.inputs[0].data;
  p.count = cuda::count_of(args.inputs[0]);
  p.scale_out = output_or_null<float>(args, 1);
  p.zero_out = output_or_null<uint8_t>(args, 2);
  // Extremes are the same however the elements are shared out.
  const uint64_t wanted = (p.count + 16 * cuda::kBlockThreads - 1) / (16 * cuda::kBlockThreads);
  p.num_extremes = cuda::num_blocks_for(std::min(wanted, kMostPairs), *state.launcher);
  p.extremes = static_cast<float*>(args.scratch->reserve(p.num_extremes * 2 * sizeof(float)));
  if (p.extremes == nullptr) {
    return args.fail(resource_exhausted("no device memory for the extremes of a tensor"));
  }
  return cuda::launch_blocks(args, *state.launcher, state.extremes, p.num_extremes, p) &&
         cuda::launch_threads(args, *state.launcher, state.function, std::max<uint64_t>(p.count, 1),
                              p);
}

Result<BoundKernel> bind_by_scale(const KernelInit& init, CudaLauncher& launcher,
                                  const std::string& kernel, ElementType byte, ElementType real) {
  const ElementType scale = init.inputs[1].tensor.element;
  const bool has_zero =
      init.inputs.size() > 2 && init.inputs[2].tensor.element != ElementType::kUndefined;
  if (scale != real || (has_zero && init.inputs[2].tensor.element != byte)) {
    return unsupported("inputs of different types are not supported by the CUDA kernel of " +
                       init.op.name);
  }
  auto state = std::make_unique<QuantizeState>();
  const std::string name = kernel + "_" + std::string(cuda::type_suffix(byte)) + "_" +
                           std::string(cuda::type_suffix(real));
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(init, launcher, name, *state));
  state->axis = init.attributes.get_int("axis", 1);
  state->block_size = init.attributes.get_int("block_size", 0);
  return cuda::bound(run_by_scale, std::move(state));
}

Result<BoundKernel> bind_quantize(const KernelInit& init, CudaLauncher& launcher) {
  return bind_by_scale(init, launcher, "Quantize", init.outputs[0].tensor.element,
                       init.inputs[0].tensor.element);
}
Result<BoundKernel> bind_dequantize(const KernelInit& init, CudaLauncher& launcher) {
  return bind_by_scale(init, launcher, "Dequantize", init.inputs[0].tensor.element,
                       init.outputs[0].tensor.element);
}
Result<BoundKernel> bind_dynamic(const KernelInit& init, CudaLauncher& launcher) {
  auto state = std::make_unique<QuantizeState>();
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(init, launcher, "QuantizeByExtremes", *state));
  EDDY_ASSIGN_OR_RETURN(state->extremes, launcher.find("eddy_Extremes"));
  return cuda::bound(run_dynamic, std::move(state));
}

}  // namespace

void add_quantize_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  cuda::add_kernel(registry, launcher, "QuantizeLinear", bind_quantize);
  cuda::add_kernel(registry, launcher, "DequantizeLinear", bind_dequantize);
  cuda::add_kernel(registry, launcher, "DynamicQuantizeLinear", bind_dynamic);
}

}  // namespace eddy
