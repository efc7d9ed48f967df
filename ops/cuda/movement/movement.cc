// Movement operators as one strided copy each: Transpose, Expand, Slice, DepthToSpace and views.
#include <array>

#include "graph/base/check.h"
#include "ops/cuda/elementwise/elementwise_plan.h"
#include "ops/cuda/launch/families.h"
#include "ops/reference/parts/list_source.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

struct CopyState : cuda::LaunchState {
  int64_t block_size = 1;            // DepthToSpace, SpaceToDepth
  bool is_column_row_depth = false;  // DepthToSpace
  IntList perm;                      // Transpose; empty: reversal
  std::array<ListSource, 4> lists;   // Slice: starts, ends, axes, steps
};

using Strides = std::array<int64_t, kMaxRank>;

Strides strides_of(const TensorView& view) {
  Strides strides{};
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= view.dims[d];
  }
  return strides;
}

bool copy(const KernelArgs& args, ElementwisePlan& plan, int64_t first) {
  const auto& state = *static_cast<const CopyState*>(args.state);
  const TensorView& in = args.inputs[0];
  const size_t bytes = element_size_bytes(in.element);
  const void* from = static_cast<const std::byte*>(in.data) + first * static_cast<int64_t>(bytes);
  return plan.launch(args, *state.launcher, state.function, args.outputs[0].data, {&from, 1},
                     false);
}

bool run_expand(const KernelArgs& args) {
  ElementwisePlan plan;
  plan.add_broadcast(args.outputs[0], {args.inputs, 1});
  return copy(args, plan, 0);
}

bool run_transpose(const KernelArgs& args) {
  const auto& state = *static_cast<const CopyState*>(args.state);
  const TensorView& in = args.inputs[0];
  EDDY_DCHECK(state.perm.is_empty() || state.perm.size() == in.rank)
      << state.perm.size() << " axes of " << in.rank;
  const Strides strides = strides_of(in);
  ElementwisePlan plan;
  for (int d = 0; d < in.rank; ++d) {
    const int64_t axis = state.perm.is_empty() ? in.rank - 1 - d : state.perm[d];
    plan.add_axis(in.dims[axis], {&strides[static_cast<size_t>(axis)], 1});
  }
  return copy(args, plan, 0);
}

bool run_slice(const KernelArgs& args) {
  const auto& state = *static_cast<const CopyState*>(args.state);
  IntList buffers[4];
  const IntList* lists[4];
  for (size_t i = 0; i < 4; ++i) {
    lists[i] = state.lists[i].read_or_null(args, buffers[i]);
    if (lists[i] == nullptr) return false;
  }
  const TensorView& in = args.inputs[0];
  SliceRanges ranges;
  Status status =
      resolve_slice(Dims(in.shape()), *lists[0], *lists[1], *lists[2], *lists[3], ranges);
  if (!status.is_ok()) return args.fail(std::move(status));
  const Strides strides = strides_of(in);
  ElementwisePlan plan;
  int64_t first = 0;
  for (size_t d = 0; d < static_cast<size_t>(in.rank); ++d) {
    first += ranges[d].start * strides[d];
    const int64_t stride = ranges[d].step * strides[d];
    EDDY_DCHECK(ranges[d].count == args.outputs[0].dims[d]) << "axis " << d << " gets another size";
    plan.add_axis(ranges[d].count, {&stride, 1});
  }
  return copy(args, plan, first);
}

// The input's channels as [block, block, depth] or [depth, block, block], the output's axes in the
// order [batch, depth, rows, block, columns, block].
bool run_depth_to_space(const KernelArgs& args) {
  const auto& state = *static_cast<const CopyState*>(args.state);
  const TensorView& in = args.inputs[0];
  EDDY_DCHECK(in.rank == 4) << "a rank of " << in.rank;
  const Strides s = strides_of(in);
  const int64_t block = state.block_size, depth = args.outputs[0].dims[1];
  const int64_t depth_step = state.is_column_row_depth ? block * block * s[1] : s[1];
  const int64_t row_step = state.is_column_row_depth ? block * s[1] : block * depth * s[1];
  const int64_t column_step = state.is_column_row_depth ? s[1] : depth * s[1];
  ElementwisePlan plan;
  plan.add_axis(in.dims[0], {&s[0], 1});
  plan.add_axis(depth, {&depth_step, 1});
  plan.add_axis(in.dims[2], {&s[2], 1});
  plan.add_axis(block, {&row_step, 1});
  plan.add_axis(in.dims[3], {&s[3], 1});
  plan.add_axis(block, {&column_step, 1});
  return copy(args, plan, 0);
}

// The output's channels as [block, block, depth].
bool run_space_to_depth(const KernelArgs& args) {
  const int64_t block = static_cast<const CopyState*>(args.state)->block_size;
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  EDDY_DCHECK(in.rank == 4 && out.dims[2] * block == in.dims[2] &&
              out.dims[3] * block == in.dims[3])
      << "a plane does not fall into blocks of " << block;
  const Strides s = strides_of(in);
  const int64_t row_step = block * s[2], column_step = block * s[3];
  ElementwisePlan plan;
  plan.add_axis(in.dims[0], {&s[0], 1});
  plan.add_axis(block, {&s[2], 1});
  plan.add_axis(block, {&s[3], 1});
  plan.add_axis(in.dims[1], {&s[1], 1});
  plan.add_axis(out.dims[2], {&row_step, 1});
  plan.add_axis(out.dims[3], {&column_step, 1});
  return copy(args, plan, 0);
}

Result<BoundKernel> bind_copy(const KernelInit& init, CudaLauncher& launcher, KernelFunction run) {
  const ElementType element = init.inputs[0].tensor.element;
  const size_t bytes = element_size_bytes(element);
  if (element == ElementType::kString || bytes > 8) return cuda::no_cuda_kernel(init);
  auto state = std::make_unique<CopyState>();
  EDDY_RETURN_IF_ERROR(cuda::find_kernel(launcher, "Copy_" + std::to_string(bytes), *state));
  if (init.op.name == "Transpose") {
    EDDY_RETURN_IF_ERROR(read_ints(init.attributes.get_ints("perm"), "perm", state->perm));
  }
  if (init.op.name == "Slice") {
    constexpr const char* kNames[] = {"starts", "ends", "axes", "steps"};
    for (size_t i = 0; i < 4; ++i) {
      EDDY_ASSIGN_OR_RETURN(state->lists[i], ListSource::make(init, i + 1, kNames[i]));
    }
  }
  state->block_size = init.attributes.get_int("blocksize", 1);
  state->is_column_row_depth = init.attributes.get_string("mode", "DCR") == "CRD";
  return cuda::bound(run, std::move(state));
}

}  // namespace

void add_movement_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  const auto add = [&](std::string_view op, KernelFunction run, std::string_view domain = "") {
    registry.add({.op = op,
                  .bind = [run, &launcher](
                              const KernelInit& init) { return bind_copy(init, launcher, run); },
                  .provider = "cuda",
                  .domain = domain});
  };
  add("Transpose", run_transpose);
  add("Expand", run_expand);
  add("Slice", run_slice);
  add("DepthToSpace", run_depth_to_space);
  add("SpaceToDepth", run_space_to_depth);
  // Where the executor shares the buffer instead, the kernel is never called.
  const KernelFunction copy_all = [](const KernelArgs& args) {
    TensorView flat = args.inputs[0];
    flat.dims = args.outputs[0].dims;
    flat.rank = args.outputs[0].rank;
    ElementwisePlan plan;
    plan.add_broadcast(args.outputs[0], {&flat, 1});
    return copy(args, plan, 0);
  };
  for (std::string_view op : {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"}) {
    add(op, copy_all);
  }
  add("CheckedCall", copy_all, "eddy");
}

}  // namespace eddy
