// The host's half of elementwise operators: which kernel, and the parameters of each launch.
#include "ops/cuda/elementwise_plan.h"
#include "ops/cuda/families.h"
#include "ops/cuda/kernel_list.h"

namespace eddy {
namespace {

using cuda::LaunchState;

template <size_t kInputs, bool kMayPack>
bool run_elementwise(const KernelArgs& args) {
  const auto& state = *static_cast<const LaunchState*>(args.state);
  const TensorView& out = args.outputs[0];
  ElementwisePlan plan;
  plan.add_broadcast(out, {args.inputs, kInputs});
  plan.set_attributes(state.a, state.b);
  const void* inputs[kInputs];
  for (size_t i = 0; i < kInputs; ++i) inputs[i] = args.inputs[i].data;
  return plan.launch(args, *state.launcher, state.function, out.data, inputs, kMayPack);
}

// Whether the list has a kernel of this operator and type.
bool has_kernel(std::string_view name) {
#define EDDY_HAS_BINARY(op, type) || name == #op "_" #type
#define EDDY_HAS_COMPARE EDDY_HAS_BINARY
#define EDDY_HAS_UNARY EDDY_HAS_BINARY
#define EDDY_HAS_WORDS(size, word) || name == "Where_" #size || name == "Copy_" #size
  return false EDDY_CUDA_KERNELS(EDDY_HAS);
}

Result<BoundKernel> bind_one(const KernelInit& init, CudaLauncher& launcher,
                             const std::string& name, KernelFunction run) {
  if (!has_kernel(name)) return cuda::no_cuda_kernel(init);
  auto state = std::make_unique<LaunchState>();
  EDDY_RETURN_IF_ERROR(cuda::find_kernel(launcher, name, *state));
  if (init.op.name == "LeakyRelu") state->a = init.attributes.get_float("alpha", 0.01f);
  BoundKernel kernel;
  kernel.run = run;
  kernel.state = std::move(state);
  return kernel;
}

std::string typed_name(const KernelInit& init) {
  return init.op.name + "_" + std::string(cuda::type_suffix(init.inputs[0].tensor.element));
}

Result<BoundKernel> bind_binary(const KernelInit& init, CudaLauncher& launcher) {
  if (init.inputs.size() != 2) {  // Max and Min of any number of inputs
    return unsupported("only two inputs are supported by the CUDA kernel of " + init.op.name);
  }
  if (init.inputs[0].tensor.element != init.inputs[1].tensor.element) {
    return unsupported("inputs of different types are not supported by the CUDA kernel of " +
                       init.op.name);
  }
  if (init.op.since_version < 7) return cuda::no_cuda_kernel(init);  // broadcasting by attribute
  return bind_one(init, launcher, typed_name(init), run_elementwise<2, true>);
}

Result<BoundKernel> bind_unary(const KernelInit& init, CudaLauncher& launcher) {
  return bind_one(init, launcher, typed_name(init), run_elementwise<1, true>);
}

Result<BoundKernel> bind_where(const KernelInit& init, CudaLauncher& launcher) {
  const ElementType element = init.inputs[1].tensor.element;
  if (element == ElementType::kString) return cuda::no_cuda_kernel(init);
  return bind_one(init, launcher, "Where_" + std::to_string(element_size_bytes(element)),
                  run_elementwise<3, false>);
}

// Also CastLike, whose second input only names the type.
Result<BoundKernel> bind_cast(const KernelInit& init, CudaLauncher& launcher) {
  auto state = std::make_unique<LaunchState>();
  const std::string name = "Cast_" + cuda::input_suffix(init) + "_" +
                           std::string(cuda::type_suffix(init.outputs[0].tensor.element));
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(init, launcher, name, *state));
  return cuda::bound(run_elementwise<1, true>, std::move(state));
}

}  // namespace

void add_elementwise_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  using Bind = Result<BoundKernel> (*)(const KernelInit&, CudaLauncher&);
  const auto add = [&](std::string_view op, Bind bind) {
    registry.add(
        {.op = op,
         .bind = [bind, &launcher](const KernelInit& init) { return bind(init, launcher); },
         .provider = "cuda"});
  };
  for (std::string_view op : {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "And", "Or", "Xor",
                              "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    add(op, bind_binary);
  }
  for (std::string_view op :
       {"Abs", "Neg", "Relu", "Ceil", "Cos", "Erf", "Exp", "Floor", "LeakyRelu", "Log",
        "Reciprocal", "Round", "Sigmoid", "Sin", "Softplus", "Sqrt", "Tanh", "Not"}) {
    add(op, bind_unary);
  }
  add("Where", bind_where);
  add("Cast", bind_cast);
  add("CastLike", bind_cast);
}

}  // namespace eddy
