// The host's half of Concat, Split and Gather: whole rows, moved in the widest words that fit.
#include <array>

#include "graph/base/check.h"
#include "ops/cuda/launch/launch.h"

namespace eddy {
namespace {

using cuda::GatherParams;
using cuda::JoinParams;

constexpr std::array<size_t, 5> kWordBytes = {1, 2, 4, 8, 16};

struct RowState : KernelState {
  CudaLauncher* launcher = nullptr;
  std::array<CudaFunction, kWordBytes.size()> functions{};  // by the log of the word's size
  int64_t axis = 0;
};

// The widest word by which all of these lengths (bytes) and addresses can be divided.
class WordSize {
 public:
  void add(uint64_t bytes) { bits_ |= bytes; }
  void add(const void* address) { bits_ |= reinterpret_cast<uintptr_t>(address); }
  size_t log() const {
    size_t log = 0;
    while (log + 1 < kWordBytes.size() && bits_ % kWordBytes[log + 1] == 0) ++log;
    return log;
  }

 private:
  uint64_t bits_ = 0;
};

// A tensor as rows of [axis, inner], inner in bytes.
struct Rows {
  uint64_t outer = 1, length = 1, inner_bytes = 1;

  Rows(const TensorView& view, int axis) : inner_bytes(element_size_bytes(view.element)) {
    for (int d = 0; d < axis; ++d) outer *= static_cast<uint64_t>(view.dims[d]);
    length = static_cast<uint64_t>(view.dims[axis]);
    for (int d = axis + 1; d < view.rank; ++d) inner_bytes *= static_cast<uint64_t>(view.dims[d]);
  }
  uint64_t row_bytes() const { return length * inner_bytes; }
};

int axis_of(const KernelArgs& args, int rank) {
  const int64_t axis = static_cast<const RowState*>(args.state)->axis;
  EDDY_DCHECK(axis >= -rank && axis < rank) << "axis " << axis << " of " << rank;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Parts first .. end of the whole, of which `before` bytes of each row come first.
bool launch_parts(const KernelArgs& args, const Rows& whole, void* data, const TensorView* parts,
                  uint32_t num_parts, int axis, uint64_t& before) {
  const auto& state = *static_cast<const RowState*>(args.state);
  EDDY_DCHECK(num_parts <= cuda::kMaxParts) << num_parts << " parts in one launch";
  WordSize word;
  word.add(data);
  word.add(whole.row_bytes());
  word.add(before);
  for (uint32_t i = 0; i < num_parts; ++i) {
    word.add(Rows(parts[i], axis).row_bytes());
    word.add(parts[i].data);
  }
  const uint64_t bytes = kWordBytes[word.log()];
  JoinParams p{};
  p.whole = data;
  p.outer = whole.outer;
  p.row = whole.row_bytes() / bytes;
  p.first = before / bytes;
  p.num_parts = static_cast<int32_t>(num_parts);
  uint64_t end = 0;
  for (uint32_t i = 0; i < num_parts; ++i) {
    end += Rows(parts[i], axis).row_bytes() / bytes;
    p.parts[i] = parts[i].data;
    p.ends[i] = end;
  }
  before += end * bytes;
  return cuda::launch_threads(args, *state.launcher, state.functions[word.log()], p.outer * end, p);
}

bool run_parts(const KernelArgs& args, const TensorView& whole, const TensorView* parts,
               uint32_t num_parts) {
  const int axis = axis_of(args, whole.rank);
  const Rows rows(whole, axis);
  uint64_t before = 0;
  for (uint32_t i = 0; i < num_parts; i += cuda::kMaxParts) {
    const uint32_t count = std::min<uint32_t>(num_parts - i, cuda::kMaxParts);
    if (!launch_parts(args, rows, whole.data, parts + i, count, axis, before)) return false;
  }
  EDDY_DCHECK(before == rows.row_bytes()) << before << " bytes of a row of " << rows.row_bytes();
  return true;
}

bool run_concat(const KernelArgs& args) {
  return run_parts(args, args.outputs[0], args.inputs, args.num_inputs);
}
bool run_split(const KernelArgs& args) {
  return run_parts(args, args.inputs[0], args.outputs, args.num_outputs);
}

bool run_gather(const KernelArgs& args) {
  const auto& state = *static_cast<const RowState*>(args.state);
  const TensorView &data = args.inputs[0], &indices = args.inputs[1];
  const int axis = axis_of(args, data.rank);
  const Rows rows(data, axis);
  WordSize word;
  word.add(data.data);
  word.add(args.outputs[0].data);
  word.add(rows.inner_bytes);
  GatherParams p{};
  p.out = args.outputs[0].data;
  p.data = data.data;
  p.indices = indices.data;
  if ((p.fault = cuda::fault_or_null(args)) == nullptr) return false;
  p.num_indices = cuda::count_of(indices);
  p.inner = rows.inner_bytes / kWordBytes[word.log()];
  p.count = rows.outer * p.num_indices * p.inner;
  p.size = data.dims[axis];
  p.axis = axis;
  p.has_wide_indices = indices.element == ElementType::kInt64 ? 1 : 0;
  return cuda::launch_threads(args, *state.launcher, state.functions[word.log()], p.count, p);
}

Result<std::unique_ptr<RowState>> make_state(const KernelInit& init, CudaLauncher& launcher,
                                             const std::string& kernel, int64_t axis) {
  const ElementType element = init.outputs[0].tensor.element;
  if (element == ElementType::kString || element_size_bytes(element) == 0) {
    return cuda::no_cuda_kernel(init);
  }
  auto state = std::make_unique<RowState>();
  state->launcher = &launcher;
  state->axis = init.attributes.get_int("axis", axis);
  for (size_t i = 0; i < kWordBytes.size(); ++i) {
    EDDY_ASSIGN_OR_RETURN(state->functions[i],
                          launcher.find("eddy_" + kernel + "_" + std::to_string(kWordBytes[i])));
  }
  return state;
}

Result<BoundKernel> bind_concat(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Concat", 1));
  return cuda::bound(run_concat, std::move(state));
}
Result<BoundKernel> bind_split(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Split", 0));
  return cuda::bound(run_split, std::move(state));
}
Result<BoundKernel> bind_gather(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Gather", 0));
  return cuda::bound(run_gather, std::move(state), true);
}

}  // namespace

void add_parts_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  cuda::add_kernel(registry, launcher, "Concat", bind_concat);
  cuda::add_kernel(registry, launcher, "Split", bind_split);
  cuda::add_kernel(registry, launcher, "Gather", bind_gather);
}

}  // namespace eddy
