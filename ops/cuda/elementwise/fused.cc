// eddy.Fused: a kernel made from the node's program, launched as any elementwise one; and
// eddy.FusedParts, the same kernel on parts of tensors.
#include <algorithm>
#include <array>
#include <optional>

#include "graph/base/check.h"
#include "ops/cuda/elementwise/elementwise_plan.h"
#include "ops/cuda/launch/families.h"
#include "ops/cuda/text/fused_text.h"

namespace eddy {
namespace {

// Where it begins in its input, and its sizes; without: all of the input.
struct Part {
  int64_t first_bytes = 0;
  std::optional<Dims> dims;
};

struct FusedState : cuda::LaunchState {
  std::vector<Part> parts;  // of each input; none: of no input

  TensorView part_of(const TensorView& whole, size_t input) const {
    if (parts.empty() || !parts[input].dims) return whole;
    const Part& part = parts[input];
    EDDY_DCHECK(whole.rank == part.dims->rank()) << "a part of another tensor";
    return {static_cast<std::byte*>(whole.data) + part.first_bytes, part.dims->span().data(),
            whole.rank, whole.element};
  }
};

// `numbers`: axis, first and size of each input's part.
std::vector<Part> parts_of(std::span<const ValueType> inputs, std::span<const int64_t> numbers) {
  std::vector<Part> parts;
  for (size_t i = 0; 3 * i < numbers.size(); ++i) {
    Part& part = parts.emplace_back();
    if (numbers[3 * i] < 0) continue;
    const TensorType& whole = inputs[i].tensor;
    const auto axis = static_cast<int>(numbers[3 * i]);
    part.first_bytes = numbers[3 * i + 1] * static_cast<int64_t>(element_size_bytes(whole.element));
    for (int d = axis + 1; d < whole.dims.rank(); ++d) part.first_bytes *= whole.dims[d];
    part.dims = whole.dims;
    (*part.dims)[axis] = numbers[3 * i + 2];
  }
  return parts;
}

bool run_fused(const KernelArgs& args) {
  const auto& state = *static_cast<const FusedState*>(args.state);
  EDDY_DCHECK(args.num_inputs <= cuda::kMaxFusedInputs) << args.num_inputs << " inputs";
  std::array<TensorView, cuda::kMaxFusedInputs> views;
  std::array<const void*, cuda::kMaxFusedInputs> data;
  for (uint32_t i = 0; i < args.num_inputs; ++i) {
    views[i] = state.part_of(args.inputs[i], i);
    data[i] = views[i].data;
  }
  const TensorView& out = args.outputs[0];
  FusedPlan plan;
  for (uint32_t k = 1; k < args.num_outputs; ++k) plan.set_out(k, args.outputs[k].data);
  plan.add_broadcast(out, std::span(views).first(args.num_inputs), {args.inputs, args.num_inputs});
  return plan.launch(args, *state.launcher, state.function, out.data,
                     std::span(data).first(args.num_inputs), true);
}

Result<BoundKernel> bind_fused(const KernelInit& init, CudaLauncher& launcher) {
  std::vector<ElementType> inputs;
  for (const ValueType& type : init.inputs) inputs.push_back(type.tensor.element);
  EDDY_ASSIGN_OR_RETURN(const Expression expression,
                        parse_expression(init.attributes.get_string("program", ""),
                                         static_cast<uint32_t>(inputs.size())));
  std::vector<ElementType> outputs;
  for (const ValueType& type : init.outputs) outputs.push_back(type.tensor.element);
  EDDY_ASSIGN_OR_RETURN(const cuda::KernelSource source,
                        cuda::fused_kernel_source(expression, inputs, outputs));
  auto state = std::make_unique<FusedState>();
  state->launcher = &launcher;
  const std::span<const int64_t> parts = init.attributes.get_ints("parts");
  const bool are_known =
      parts.empty() || std::ranges::all_of(init.inputs, &ValueType::is_static_tensor);
  if (!are_known) return cuda::no_cuda_kernel(init);
  state->parts = parts_of(init.inputs, parts);
  EDDY_ASSIGN_OR_RETURN(state->function, launcher.compile(source));
  return cuda::bound(run_fused, std::move(state));
}

}  // namespace

void add_fused_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  cuda::add_kernel(registry, launcher, "Fused", bind_fused, "eddy");
  cuda::add_kernel(registry, launcher, "FusedParts", bind_fused, "eddy");
}

}  // namespace eddy
