// The host's half of LayerNormalization, InstanceNormalization and BatchNormalization; large ones
// of the last go to cuDNN where it is there and has a way.
#include "graph/base/check.h"
#include "ops/cuda/elementwise/elementwise_plan.h"
#include "ops/cuda/launch/launch.h"
#include "ops/cuda/libraries/dnn_library.h"
#include "ops/reference/parts/outputs.h"
#include "ops/reference/reduce/normalization.h"

namespace eddy {
namespace {

using cuda::ChannelParams;
using cuda::NormParams;

struct NormState : cuda::LaunchState {
  double epsilon = 1e-5;
  int64_t axis = -1;
  DnnLibrary* dnn_or_null = nullptr;
  ElementType element = ElementType::kFloat;
};

const NormState& state_of(const KernelArgs& args) {
  return *static_cast<const NormState*>(args.state);
}

NormParams make_params(const KernelArgs& args) {
  NormParams p{};
  p.out = args.outputs[0].data;
  p.in = args.inputs[0].data;
  p.scale = args.inputs[1].data;
  p.bias = args.has_input(2) ? args.inputs[2].data : nullptr;
  p.epsilon = state_of(args).epsilon;
  return p;
}

bool launch_rows(const KernelArgs& args, const NormParams& p) {
  const NormState& state = state_of(args);
  return cuda::launch_blocks(args, *state.launcher, state.function, p.count, p);
}

// Whether scale and bias have the elements of a row, one behind the other.
bool is_row_alike(const NormParams& p) {
  for (int operand = 0; operand < (p.bias == nullptr ? 1 : 2); ++operand) {
    const int64_t* const strides = p.strides[operand];
    const bool is_row = p.rank > 0 && p.dims[p.rank - 1] == p.length && strides[p.rank - 1] == 1;
    if (!is_row || p.rank > 2 || (p.rank == 2 && strides[0] != 0)) return false;
  }
  return true;
}

bool run_layer_norm(const KernelArgs& args) {
  const TensorView& x = args.inputs[0];
  int64_t rows, columns;
  split_at_axis(x, state_of(args).axis, rows, columns);
  NormParams p = make_params(args);
  p.count = static_cast<uint64_t>(rows);
  p.length = static_cast<uint64_t>(columns);
  p.mean_out = output_or_null<float>(args, 1);
  p.factor_out = output_or_null<float>(args, 2);
  ElementwisePlan plan;
  plan.add_broadcast(x, {args.inputs + 1, args.has_input(2) ? 2u : 1u});
  if (!plan.fits()) return args.fail(unsupported("too many broadcast axes of scale and bias"));
  const cuda::ElementwiseParams& broadcast = plan.params();
  p.rank = broadcast.rank;
  std::copy(std::begin(broadcast.dims), std::end(broadcast.dims), p.dims);
  for (int i = 0; i < 2; ++i) {
    std::copy(std::begin(broadcast.strides[i]), std::end(broadcast.strides[i]), p.strides[i]);
  }
  p.is_row_alike = is_row_alike(p) ? 1 : 0;
  // Rows without elements have no output but their moments, which the launch writes.
  return launch_rows(args, p);
}

bool run_instance_norm(const KernelArgs& args) {
  const TensorView& x = args.inputs[0];
  NormParams p = make_params(args);
  EDDY_DCHECK(x.rank >= 2 && args.inputs[1].count() == x.dims[1]) << "a scale is not by channel";
  p.channels = static_cast<uint64_t>(x.dims[1]);
  p.count = static_cast<uint64_t>(x.dims[0]) * p.channels;
  p.length = 1;
  for (int d = 2; d < x.rank; ++d) p.length *= static_cast<uint64_t>(x.dims[d]);
  return p.length == 0 || launch_rows(args, p);
}

bool run_batch_norm(const KernelArgs& args) {
  const NormState& state = state_of(args);
  const TensorView& x = args.inputs[0];
  ChannelParams p{};
  p.out = args.outputs[0].data;
  p.in = x.data;
  p.scale = args.inputs[1].data;
  p.bias = args.inputs[2].data;
  p.mean = args.inputs[3].data;
  p.variance = args.inputs[4].data;
  for (int i = 1; i <= 4; ++i) {
    EDDY_DCHECK(args.inputs[i].count() == x.dims[1]) << "input " << i << " is not by channel";
  }
  p.count = cuda::count_of(x);
  p.channels = static_cast<uint64_t>(x.dims[1]);
  p.inner = 1;
  for (int d = 2; d < x.rank; ++d) p.inner *= static_cast<uint64_t>(x.dims[d]);
  p.epsilon = state.epsilon;
  if (state.dnn_or_null != nullptr) {
    const auto outcome =
        cuda::outcome_of(args, state.dnn_or_null->norms().run(args, state.element, p));
    if (outcome) return *outcome;
  }
  return cuda::launch_threads(args, *state.launcher, state.function, p.count, p);
}

// All of one type but for optional outputs, which are floats.
Result<BoundKernel> bind_norm(const KernelInit& init, CudaLauncher& launcher,
                              const std::string& kernel, KernelFunction run,
                              DnnLibrary* dnn_or_null = nullptr) {
  const ElementType element = init.inputs[0].tensor.element;
  for (const ValueType& input : init.inputs) {
    const bool is_omitted = input.tensor.element == ElementType::kUndefined;
    if (!is_omitted && input.tensor.element != element) {
      return unsupported("inputs of different types are not supported by the CUDA kernel of " +
                         init.op.name);
    }
  }
  for (size_t o = 1; o < init.outputs.size(); ++o) {
    const ElementType output = init.outputs[o].tensor.element;
    if (output != ElementType::kFloat && output != ElementType::kUndefined) {
      return cuda::no_cuda_kernel(init);
    }
  }
  auto state = std::make_unique<NormState>();
  EDDY_RETURN_IF_ERROR(
      cuda::find_typed_kernel(init, launcher, kernel + "_" + cuda::input_suffix(init), *state));
  state->epsilon = init.attributes.get_float("epsilon", 1e-5f);
  state->axis = init.attributes.get_int("axis", -1);
  state->element = element;
  if (DnnNorms::has_type(element)) state->dnn_or_null = dnn_or_null;
  if (state->dnn_or_null != nullptr) state->dnn_or_null->expect_use();
  return cuda::bound(run, std::move(state));
}

Result<BoundKernel> bind_layer_norm(const KernelInit& init, CudaLauncher& launcher) {
  return bind_norm(init, launcher, "LayerNorm", run_layer_norm);
}

Result<BoundKernel> bind_instance_norm(const KernelInit& init, CudaLauncher& launcher) {
  return bind_norm(init, launcher, "InstanceNorm", run_instance_norm);
}

Result<BoundKernel> bind_batch_norm(const KernelInit& init, CudaLauncher& launcher,
                                    DnnLibrary* dnn_or_null) {
  const Attributes& attributes = init.attributes;
  if (attributes.get_int("spatial", 1) == 0) return cuda::no_cuda_kernel(init);
  if (attributes.get_int("training_mode", 0) != 0 || init.outputs.size() > 1) {
    return unsupported("BatchNormalization that trains has no CUDA kernel");
  }
  return bind_norm(init, launcher, "BatchNorm", run_batch_norm, dnn_or_null);
}

}  // namespace

void add_norms_cuda(KernelRegistry& registry, CudaLauncher& launcher, DnnLibrary* dnn_or_null) {
  cuda::add_kernel(registry, launcher, "LayerNormalization", bind_layer_norm);
  cuda::add_kernel(registry, launcher, "InstanceNormalization", bind_instance_norm);
  cuda::add_kernel(registry, launcher, "BatchNormalization", bind_batch_norm, dnn_or_null);
}

}  // namespace eddy
