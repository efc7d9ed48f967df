// eddy.Fused: a kernel made from the node's program, launched as any elementwise one.
#include "ops/cuda/elementwise/elementwise_plan.h"
#include "ops/cuda/launch/families.h"
#include "ops/cuda/text/fused_text.h"

namespace eddy {
namespace {

bool run_fused(const KernelArgs& args) {
  const auto& state = *static_cast<const cuda::LaunchState*>(args.state);
  const TensorView& out = args.outputs[0];
  FusedPlan plan;
  plan.add_broadcast(out, {args.inputs, args.num_inputs});
  const void* inputs[cuda::kMaxFusedInputs];
  for (uint32_t i = 0; i < args.num_inputs; ++i) inputs[i] = args.inputs[i].data;
  return plan.launch(args, *state.launcher, state.function, out.data, {inputs, args.num_inputs},
                     true);
}

Result<BoundKernel> bind_fused(const KernelInit& init, CudaLauncher& launcher) {
  std::vector<ElementType> inputs;
  for (const ValueType& type : init.inputs) inputs.push_back(type.tensor.element);
  EDDY_ASSIGN_OR_RETURN(const Expression expression,
                        parse_expression(init.attributes.get_string("program", ""),
                                         static_cast<uint32_t>(inputs.size())));
  EDDY_ASSIGN_OR_RETURN(
      const cuda::KernelSource source,
      cuda::fused_kernel_source(expression, inputs, init.outputs[0].tensor.element));
  auto state = std::make_unique<cuda::LaunchState>();
  state->launcher = &launcher;
  EDDY_ASSIGN_OR_RETURN(state->function, launcher.compile(source));
  return cuda::bound(run_fused, std::move(state));
}

}  // namespace

void add_fused_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  cuda::add_kernel(registry, launcher, "Fused", bind_fused, "eddy");
}

}  // namespace eddy
