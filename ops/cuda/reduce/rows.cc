// The host's half of reductions, ArgMax, ArgMin, Softmax and LogSoftmax: which kernel, and where
// the rows are. Which kernel takes a row depends on its length alone: a thread has a short one, a
// warp one of middling length, a block a long one; few long rows are CUB's work where that is there
// (long_lines.h).
#include <algorithm>

#include "graph/base/check.h"
#include "ops/cuda/launch/launch.h"
#include "ops/cuda/names/kernel_list.h"
#include "ops/cuda/reduce/long_lines.h"
#include "ops/cuda/reduce/row_warp_inl.h"
#include "ops/cuda/text/persistent_text.h"
#include "ops/reference/parts/axes.h"

namespace eddy {
namespace {

using cuda::LineSum;
using cuda::RowParams;

static_assert(cuda::kBlockRow == cuda::kLongRow && cuda::kWarpRow == cuda::kMiddlingRow,
              "persistent loops take the same kernels' bodies");

struct RowState : cuda::LaunchState {
  CudaFunction block = nullptr;  // the kernel for long rows
  CudaFunction warp = nullptr;   // for middling ones
  ReduceAxes axes;               // reductions
  bool takes_last = false;       // ArgMax, ArgMin
  // CUB's way for few long rows; null: there is none.
  const LongLines* long_lines_or_null = nullptr;
  enum class Long { kSum, kExtreme, kPlace } long_work = Long::kSum;
  LineSum sum = LineSum::kSum;
  bool is_least = false;
  ElementType element = ElementType::kUndefined;
  int64_t axis = 0;  // all others
  bool has_axis = false;
  int since_version = 1;
};

bool has_kernel(std::string_view name) {
#define EDDY_HAS_REDUCE(op, type) || name == #op "_" #type
#define EDDY_HAS_EXTREME EDDY_HAS_REDUCE
#define EDDY_HAS_ARG EDDY_HAS_REDUCE
#define EDDY_HAS_SOFTMAX EDDY_HAS_REDUCE
  return false EDDY_CUDA_ROWS(EDDY_HAS);
}

// False when there is nothing to do: no rows, or no elements in them.
bool is_launched(const RowParams& p) { return p.count > 0 && p.length > 0; }

struct NamedSum {
  std::string_view op;
  LineSum sum;
};
constexpr NamedSum kSums[] = {{"ReduceSum", LineSum::kSum},
                              {"ReduceProd", LineSum::kProd},
                              {"ReduceMean", LineSum::kMean},
                              {"ReduceL1", LineSum::kL1},
                              {"ReduceL2", LineSum::kL2},
                              {"ReduceLogSum", LineSum::kLogSum},
                              {"ReduceSumSquare", LineSum::kSumSquare}};

void set_long_work(const KernelInit& init, const LongLines* long_lines_or_null, RowState& state) {
  const std::string_view op = init.op.name;
  state.long_lines_or_null = long_lines_or_null;
  state.element = init.inputs[0].tensor.element;
  state.is_least = op == "ReduceMin" || op == "ArgMin";
  if (op == "ReduceMax" || op == "ReduceMin") state.long_work = RowState::Long::kExtreme;
  if (op == "ArgMax" || op == "ArgMin") state.long_work = RowState::Long::kPlace;
  for (const NamedSum& one : kSums) {
    if (one.op == op) state.sum = one.sum;
  }
}

// False: our own kernels' work.
Result<bool> run_long(const KernelArgs& args, const RowParams& p) {
  const auto& state = *static_cast<const RowState*>(args.state);
  if (state.long_lines_or_null == nullptr) return false;
  const LongLines& long_lines = *state.long_lines_or_null;
  if (state.long_work == RowState::Long::kSum) {
    return long_lines.sum(args, state.element, state.sum, p);
  }
  const bool gives_place = state.long_work == RowState::Long::kPlace;
  return long_lines.extreme(args, state.element, state.is_least, gives_place, p);
}

bool launch(const KernelArgs& args, RowParams& p) {
  const auto& state = *static_cast<const RowState*>(args.state);
  p.out = args.outputs[0].data;
  p.in = args.inputs[0].data;
  p.takes_last = state.takes_last ? 1 : 0;
  if (const auto outcome = cuda::outcome_of(args, run_long(args, p))) return *outcome;
  if (p.length >= cuda::kLongRow) {
    return cuda::launch_blocks(args, *state.launcher, state.block, p.count, p);
  }
  if (p.length >= cuda::kWarpRow) {
    const uint64_t num_blocks = (p.count + cuda::kWarpRows - 1) / cuda::kWarpRows;
    return cuda::launch_blocks(args, *state.launcher, state.warp, num_blocks, p);
  }
  return cuda::launch_threads(args, *state.launcher, state.function, p.count, p);
}

void add_kept(RowParams& p, int64_t dim, int64_t stride) {
  EDDY_DCHECK(p.num_kept < cuda::kMaxAxes) << "more than " << cuda::kMaxAxes << " axes are kept";
  p.kept_dims[p.num_kept] = static_cast<uint64_t>(dim);
  p.kept_strides[p.num_kept++] = stride;
  p.count *= static_cast<uint64_t>(dim);
}
void add_reduced(RowParams& p, int64_t dim, int64_t stride) {
  EDDY_DCHECK(p.num_reduced < cuda::kMaxAxes) << "more than " << cuda::kMaxAxes << " axes go";
  p.reduced_dims[p.num_reduced] = static_cast<uint64_t>(dim);
  p.reduced_strides[p.num_reduced++] = stride;
  p.length *= static_cast<uint64_t>(dim);
}

bool run_reduce(const KernelArgs& args) {
  const auto& state = *static_cast<const RowState*>(args.state);
  const TensorView& in = args.inputs[0];
  const Result<uint32_t> mask =
      state.axes.mask(in.rank, args.has_input(1) ? args.inputs[1] : TensorView());
  if (!mask.is_ok()) return args.fail(mask.status());
  int64_t strides[kMaxRank] = {};
  int64_t stride = 1;
  for (int d = in.rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= in.dims[d];
  }
  RowParams p{};
  p.count = p.length = 1;
  for (int d = 0; d < in.rank; ++d) {
    (*mask >> d & 1) != 0 ? add_reduced(p, in.dims[d], strides[d])
                          : add_kept(p, in.dims[d], strides[d]);
  }
  EDDY_DCHECK(p.count == cuda::count_of(args.outputs[0])) << p.count << " rows for another output";
  return p.count == 0 || launch(args, p);
}

bool run_split(const KernelArgs& args, const AxisSplit& split) {
  RowParams p{};
  p.count = p.length = 1;
  add_kept(p, split.outer, split.count * split.inner);
  add_kept(p, split.inner, 1);
  add_reduced(p, split.count, split.inner);
  return !is_launched(p) || launch(args, p);
}

bool run_arg(const KernelArgs& args) {
  const auto& state = *static_cast<const RowState*>(args.state);
  return run_split(args, split_at_axis(args.inputs[0].shape(), state.axis));
}

bool run_softmax(const KernelArgs& args) {
  const auto& state = *static_cast<const RowState*>(args.state);
  return run_split(
      args, split_softmax(args.inputs[0].shape(), state.since_version, state.has_axis, state.axis));
}

Result<std::unique_ptr<RowState>> make_state(const KernelInit& init, CudaLauncher& launcher) {
  const std::string name = init.op.name + "_" + cuda::input_suffix(init);
  if (!has_kernel(name)) return cuda::no_cuda_kernel(init);
  auto state = std::make_unique<RowState>();
  EDDY_RETURN_IF_ERROR(cuda::find_kernel(launcher, name, *state));
  EDDY_ASSIGN_OR_RETURN(state->block, launcher.find("eddy_Block" + name));
  EDDY_ASSIGN_OR_RETURN(state->warp, launcher.find("eddy_Warp" + name));
  state->takes_last = init.attributes.get_int("select_last_index", 0) != 0;
  state->has_axis = init.attributes.has("axis");
  state->since_version = init.op.since_version;
  return state;
}

Result<BoundKernel> bind_reduce(const KernelInit& init, CudaLauncher& launcher,
                                const LongLines* long_lines_or_null) {
  // Over no axes every row has one element: left to the CPU.
  if (init.attributes.get_int("noop_with_empty_axes", 0) != 0) return cuda::no_cuda_kernel(init);
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher));
  EDDY_ASSIGN_OR_RETURN(state->axes, ReduceAxes::of(init));
  set_long_work(init, long_lines_or_null, *state);
  return cuda::bound(run_reduce, std::move(state));
}

Result<BoundKernel> bind_arg(const KernelInit& init, CudaLauncher& launcher,
                             const LongLines* long_lines_or_null) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher));
  state->axis = init.attributes.get_int("axis", 0);
  set_long_work(init, long_lines_or_null, *state);
  return cuda::bound(run_arg, std::move(state));
}

Result<BoundKernel> bind_softmax(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher));
  state->axis = init.attributes.get_int("axis", -1);
  return cuda::bound(run_softmax, std::move(state));
}

}  // namespace

void add_rows_cuda(KernelRegistry& registry, CudaLauncher& launcher,
                   const LongLines* long_lines_or_null) {
  for (const NamedSum& one : kSums) {
    cuda::add_kernel(registry, launcher, one.op, bind_reduce, long_lines_or_null);
  }
  for (std::string_view op : {"ReduceMax", "ReduceMin"}) {
    cuda::add_kernel(registry, launcher, op, bind_reduce, long_lines_or_null);
  }
  for (std::string_view op : {"ArgMax", "ArgMin"}) {
    cuda::add_kernel(registry, launcher, op, bind_arg, long_lines_or_null);
  }
  for (std::string_view op : {"Softmax", "LogSoftmax"}) {
    cuda::add_kernel(registry, launcher, op, bind_softmax);
  }
}

}  // namespace eddy
