// The host's half of CumSum and TopK: lines along an axis; few long ones are CUB's work where that
// is there (long_lines.h).
#include "graph/base/check.h"
#include "ops/cuda/launch/launch.h"
#include "ops/cuda/reduce/long_lines.h"
#include "ops/cuda/text/persistent_text.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/outputs.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

using cuda::LineParams;

// As many lines fill a device with a thread for each.
constexpr uint64_t kManyLines = 1 << 15;

struct LineState : cuda::LaunchState {
  CudaFunction block = nullptr;  // the kernel for long lines
  int64_t axis = -1;
  bool is_largest = true;
  bool is_exclusive = false;
  bool is_reverse = false;
  ElementType element = ElementType::kUndefined;
  const LongLines* long_lines_or_null = nullptr;
};

const LineState& state_of(const KernelArgs& args) {
  return *static_cast<const LineState*>(args.state);
}

LineParams make_params(const KernelArgs& args, int64_t axis) {
  const AxisSplit split = split_at_axis(args.inputs[0].shape(), axis);
  LineParams p{};
  p.out = args.outputs[0].data;
  p.in = args.inputs[0].data;
  p.length = static_cast<uint64_t>(split.count);
  p.inner = static_cast<uint64_t>(split.inner);
  p.num_lines = static_cast<uint64_t>(split.outer) * p.inner;
  return p;
}

bool run_cum_sum(const KernelArgs& args) {
  const LineState& state = state_of(args);
  const int rank = args.inputs[0].rank;
  int64_t axis = 0;
  Status status = read_int(args.inputs[1], "axis", axis);
  if (!status.is_ok()) return args.fail(std::move(status));
  if (axis < -rank || axis >= rank) {
    return args.fail(invalid_argument("axis " + std::to_string(axis) +
                                      " is out of range for rank " + std::to_string(rank)));
  }
  LineParams p = make_params(args, axis);
  p.is_exclusive = state.is_exclusive ? 1 : 0;
  p.is_reverse = state.is_reverse ? 1 : 0;
  if (state.long_lines_or_null != nullptr) {
    const auto outcome =
        cuda::outcome_of(args, state.long_lines_or_null->cum_sum(args, state.element, p));
    if (outcome) return *outcome;
  }
  if (p.length >= cuda::kLongRow && p.num_lines < kManyLines) {
    return cuda::launch_blocks(args, *state.launcher, state.block, p.num_lines, p);
  }
  return cuda::launch_threads(args, *state.launcher, state.function, p.num_lines, p);
}

bool run_top_k(const KernelArgs& args) {
  const LineState& state = state_of(args);
  const int rank = args.inputs[0].rank;
  LineParams p = make_params(args, state.axis);
  const int64_t axis = state.axis < 0 ? state.axis + rank : state.axis;
  p.k = static_cast<uint64_t>(args.outputs[0].dims[axis]);
  EDDY_DCHECK(p.k <= p.length) << p.k << " of " << p.length << " elements";
  p.indices = output_or_null<int64_t>(args, 1);
  p.is_largest = state.is_largest ? 1 : 0;
  if (state.long_lines_or_null != nullptr) {
    const auto outcome =
        cuda::outcome_of(args, state.long_lines_or_null->top_k(args, state.element, p));
    if (outcome) return *outcome;
  }
  const uint64_t num_lines = p.k == 0 ? 0 : p.num_lines;
  return cuda::launch_blocks(args, *state.launcher, state.function, num_lines, p);
}

Result<std::unique_ptr<LineState>> make_state(const KernelInit& init, CudaLauncher& launcher,
                                              const LongLines* long_lines_or_null) {
  auto state = std::make_unique<LineState>();
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(
      init, launcher, init.op.name + "_" + cuda::input_suffix(init), *state));
  state->element = init.inputs[0].tensor.element;
  state->long_lines_or_null = long_lines_or_null;
  state->axis = init.attributes.get_int("axis", -1);
  state->is_largest = init.attributes.get_int("largest", 1) != 0;
  state->is_exclusive = init.attributes.get_int("exclusive", 0) != 0;
  state->is_reverse = init.attributes.get_int("reverse", 0) != 0;
  return state;
}

Result<BoundKernel> bind_cum_sum(const KernelInit& init, CudaLauncher& launcher,
                                 const LongLines* long_lines_or_null) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, long_lines_or_null));
  EDDY_ASSIGN_OR_RETURN(state->block,
                        launcher.find("eddy_BlockCumSum_" + cuda::input_suffix(init)));
  return cuda::bound(run_cum_sum, std::move(state));
}
Result<BoundKernel> bind_top_k(const KernelInit& init, CudaLauncher& launcher,
                               const LongLines* long_lines_or_null) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, long_lines_or_null));
  return cuda::bound(run_top_k, std::move(state));
}

}  // namespace

void add_lines_cuda(KernelRegistry& registry, CudaLauncher& launcher,
                    const LongLines* long_lines_or_null) {
  cuda::add_kernel(registry, launcher, "CumSum", bind_cum_sum, long_lines_or_null);
  cuda::add_kernel(registry, launcher, "TopK", bind_top_k, long_lines_or_null);
}

}  // namespace eddy
