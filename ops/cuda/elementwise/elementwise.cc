// The host's half of elementwise operators: which kernel, and the parameters of each launch.
#include "ops/cuda/elementwise/elementwise_plan.h"
#include "ops/cuda/elementwise/node_function.h"
#include "ops/cuda/launch/families.h"
#include "ops/cuda/launch/launch.h"
#include "ops/schema/unary_operators.h"

namespace eddy {
namespace {

using cuda::LaunchState;

struct VariadicState : LaunchState {
  CudaFunction copy = nullptr;    // of a single input
  CudaFunction divide = nullptr;  // Mean
};

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

// Max, Min, Sum and Mean of any number of inputs: two at a time, the result and the next.
bool run_variadic(const KernelArgs& args) {
  const auto& state = *static_cast<const VariadicState*>(args.state);
  const TensorView& out = args.outputs[0];
  TensorView pair[2] = {args.inputs[0], args.inputs[0]};
  for (uint32_t i = 1; i < args.num_inputs || i == 1; ++i) {
    const bool is_single = args.num_inputs == 1;
    if (!is_single) pair[1] = args.inputs[i];
    ElementwisePlan plan;
    plan.add_broadcast(out, {pair, is_single ? size_t{1} : size_t{2}});
    const void* inputs[] = {pair[0].data, pair[1].data};
    const bool is_launched =
        plan.launch(args, *state.launcher, is_single ? state.copy : state.function, out.data,
                    {inputs, is_single ? size_t{1} : size_t{2}}, !is_single);
    if (!is_launched) return false;
    pair[0] = out;
  }
  if (state.divide == nullptr || args.num_inputs == 1) return true;
  ElementwisePlan plan;
  plan.add_broadcast(out, {&out, 1});
  plan.set_attributes(static_cast<float>(args.num_inputs), 0);
  const void* inputs[] = {out.data};
  return plan.launch(args, *state.launcher, state.divide, out.data, inputs, true);
}

// One launch that applies the node's function.
template <KernelFunction kRun>
Result<BoundKernel> bind_function(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(const ElementFunction function, cuda::element_function(init));
  auto state = std::make_unique<LaunchState>();
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(init, launcher, function.name, *state));
  state->a = function.a;
  state->b = function.b;
  return cuda::bound(kRun, std::move(state));
}

bool run_division(const KernelArgs& args) {
  const auto& state = *static_cast<const LaunchState*>(args.state);
  DeviceFault* const fault = cuda::fault_or_null(args);
  if (fault == nullptr) return false;
  const TensorView& out = args.outputs[0];
  ElementwisePlan plan;
  plan.add_broadcast(out, {args.inputs, 2});
  const void* inputs[] = {args.inputs[0].data, args.inputs[1].data, fault};
  return plan.launch(args, *state.launcher, state.function, out.data, inputs, false);
}

// Div and Mod: of floats as all others, of integers by what may fail.
Result<BoundKernel> bind_division(const KernelInit& init, CudaLauncher& launcher) {
  const ElementType element = init.inputs[0].tensor.element;
  if (!kIntTypes.contains(element)) {
    return bind_function<run_elementwise<2, true>>(init, launcher);
  }
  const bool is_remainder = init.attributes.get_int("fmod", 0) != 0;
  const char* const op = init.op.name == "Div" ? "IntegerDiv"
                         : is_remainder        ? "Remainder"
                                               : "Modulo";
  auto state = std::make_unique<LaunchState>();
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(
      init, launcher, std::string(op) + "_" + cuda::input_suffix(init), *state));
  return cuda::bound(run_division, std::move(state), true);
}

Result<BoundKernel> bind_variadic(const KernelInit& init, CudaLauncher& launcher) {
  auto state = std::make_unique<VariadicState>();
  const ElementType element = init.inputs[0].tensor.element;
  const std::string suffix = cuda::input_suffix(init);
  const std::string op = init.op.name == "Sum" || init.op.name == "Mean" ? "Add" : init.op.name;
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(init, launcher, op + "_" + suffix, *state));
  EDDY_ASSIGN_OR_RETURN(state->copy,
                        launcher.find("eddy_Copy_" + std::to_string(element_size_bytes(element))));
  if (init.op.name == "Mean") {
    EDDY_ASSIGN_OR_RETURN(state->divide, launcher.find("eddy_DivideBy_" + suffix));
  }
  return cuda::bound(run_variadic, std::move(state));
}

// Only words move, so one kernel serves all types of a size.
Result<BoundKernel> bind_where(const KernelInit& init, CudaLauncher& launcher) {
  const ElementType element = init.inputs[1].tensor.element;
  if (element == ElementType::kString) return cuda::no_cuda_kernel(init);
  auto state = std::make_unique<LaunchState>();
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(
      init, launcher, "Where_" + std::to_string(element_size_bytes(element)), *state));
  return cuda::bound(run_elementwise<3, false>, std::move(state));
}

// Also CastLike, whose second input only names the type.
Result<BoundKernel> bind_cast(const KernelInit& init, CudaLauncher& launcher) {
  auto state = std::make_unique<LaunchState>();
  const std::string name = "Cast_" + cuda::input_suffix(init) + "_" +
                           std::string(cuda::type_suffix(init.outputs[0].tensor.element));
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(init, launcher, name, *state));
  return cuda::bound(run_elementwise<1, true>, std::move(state));
}

// The limits that are given follow x.
bool run_clip_high(const KernelArgs& args) {
  const TensorView inputs[] = {args.inputs[0], args.inputs[2]};
  KernelArgs two = args;
  two.inputs = inputs;
  two.num_inputs = 2;
  return run_elementwise<2, true>(two);
}

Result<BoundKernel> bind_clip(const KernelInit& init, CudaLauncher& launcher) {
  const auto is_given = [&](size_t i) {
    return init.inputs.size() > i && init.inputs[i].tensor.element != ElementType::kUndefined;
  };
  if (init.op.since_version < 11) return bind_function<run_elementwise<1, true>>(init, launcher);
  if (is_given(1) && is_given(2)) return bind_function<run_elementwise<3, true>>(init, launcher);
  if (is_given(1)) return bind_function<run_elementwise<2, true>>(init, launcher);
  if (is_given(2)) return bind_function<run_clip_high>(init, launcher);
  auto state = std::make_unique<LaunchState>();
  const size_t size = element_size_bytes(init.inputs[0].tensor.element);
  EDDY_RETURN_IF_ERROR(
      cuda::find_typed_kernel(init, launcher, "Copy_" + std::to_string(size), *state));
  return cuda::bound(run_elementwise<1, false>, std::move(state));
}

}  // namespace

void add_elementwise_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  const auto add = [&](std::string_view op, cuda::BindCuda bind) {
    cuda::add_kernel(registry, launcher, op, bind);
  };
  for (const std::string_view op : cuda::binary_operators()) {
    add(op, bind_function<run_elementwise<2, true>>);
  }
  for (const UnaryOperator& op : kUnaryOperators) {
    add(op.name, bind_function<run_elementwise<1, true>>);
  }
  add("IsInf", bind_function<run_elementwise<1, true>>);
  add("IsNaN", bind_function<run_elementwise<1, true>>);
  add("Div", bind_division);
  add("Mod", bind_division);
  for (std::string_view op : {"Max", "Min", "Sum", "Mean"}) add(op, bind_variadic);
  add("Clip", bind_clip);
  add("Where", bind_where);
  add("Cast", bind_cast);
  add("CastLike", bind_cast);
}

}  // namespace eddy
