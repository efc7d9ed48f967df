// The host's half of GatherElements, GatherND, ScatterElements and ScatterND.
#include "graph/base/check.h"
#include "ops/cuda/launch/launch.h"
#include "ops/reference/parts/combine.h"
#include "ops/reference/parts/locate.h"

namespace eddy {
namespace {

using cuda::ElementsParams;
using cuda::TuplesParams;

struct IndexState : cuda::LaunchState {
  CudaFunction copy = nullptr;  // scatters: the data to the output
  int64_t axis = 0;
  int64_t batch_dims = 0;
  Reduction reduction = Reduction::kNone;
};

const IndexState& state_of(const KernelArgs& args) {
  return *static_cast<const IndexState*>(args.state);
}

bool fill_elements(const KernelArgs& args, ElementsParams& p) {
  const IndexState& state = state_of(args);
  const TensorView &data = args.inputs[0], &indices = args.inputs[1];
  p.out = args.outputs[0].data;
  p.data = data.data;
  p.indices = indices.data;
  if ((p.fault = cuda::fault_or_null(args)) == nullptr) return false;
  p.rank = data.rank;
  p.axis = static_cast<int32_t>(state.axis < 0 ? state.axis + data.rank : state.axis);
  EDDY_DCHECK(indices.rank == data.rank && p.axis >= 0 && p.axis < data.rank)
      << "axis " << p.axis << " of ranks " << data.rank << " and " << indices.rank;
  p.size = data.dims[p.axis];
  p.has_wide_indices = indices.element == ElementType::kInt64 ? 1 : 0;
  p.reduction = static_cast<int32_t>(state.reduction);
  const auto strides = strides_of(data);
  p.count = 1;
  for (int d = 0; d < data.rank; ++d) {
    p.dims[d] = static_cast<uint64_t>(indices.dims[d]);
    p.strides[d] = strides[static_cast<size_t>(d)];
    p.count *= p.dims[d];
  }
  return true;
}

bool run_gather_elements(const KernelArgs& args) {
  ElementsParams p{};
  if (!fill_elements(args, p)) return false;
  return cuda::launch_threads(args, *state_of(args).launcher, state_of(args).function, p.count, p);
}

// Starts the output as the data, unless it is that already.
bool copy_data(const KernelArgs& args) {
  const IndexState& state = state_of(args);
  if (args.inputs[0].data == args.outputs[0].data) return true;
  cuda::ElementwiseParams p{};
  p.out = args.outputs[0].data;
  p.in[0] = args.inputs[0].data;
  p.count = p.dims[0] = cuda::count_of(args.inputs[0]);
  p.rank = 1;
  p.strides[0][0] = 1;
  return cuda::launch_threads(args, *state.launcher, state.copy, p.count, p);
}

bool run_scatter_elements(const KernelArgs& args) {
  ElementsParams p{};
  if (!copy_data(args) || !fill_elements(args, p)) return false;
  p.updates = args.inputs[2].data;
  if (p.count == 0) return true;
  p.count /= p.dims[p.axis];  // lines
  return cuda::launch_threads(args, *state_of(args).launcher, state_of(args).function, p.count, p);
}

bool fill_tuples(const KernelArgs& args, int batch, TuplesParams& p) {
  const TensorView &data = args.inputs[0], &indices = args.inputs[1];
  p.out = args.outputs[0].data;
  p.data = data.data;
  p.indices = indices.data;
  if ((p.fault = cuda::fault_or_null(args)) == nullptr) return false;
  p.length = static_cast<int32_t>(indices.dims[indices.rank - 1]);
  EDDY_DCHECK(p.length > 0 && batch + p.length <= data.rank)
      << "tuples of " << p.length << " behind " << batch << " of " << data.rank << " axes";
  p.first_axis = batch;
  p.reduction = static_cast<int32_t>(state_of(args).reduction);
  const auto strides = strides_of(data);
  for (int i = 0; i < p.length; ++i) {
    p.sizes[i] = data.dims[batch + i];
    p.strides[i] = strides[static_cast<size_t>(batch + i)];
  }
  p.slice = p.num_tuples = p.tuples_per_batch = 1;
  for (int d = batch + p.length; d < data.rank; ++d) p.slice *= static_cast<uint64_t>(data.dims[d]);
  for (int d = 0; d < indices.rank - 1; ++d) {
    p.num_tuples *= static_cast<uint64_t>(indices.dims[d]);
    if (d >= batch) p.tuples_per_batch *= static_cast<uint64_t>(indices.dims[d]);
  }
  p.batch_stride = batch > 0 ? strides[static_cast<size_t>(batch - 1)] : 0;
  return true;
}

bool run_gather_tuples(const KernelArgs& args) {
  TuplesParams p{};
  if (!fill_tuples(args, static_cast<int>(state_of(args).batch_dims), p)) return false;
  return cuda::launch_threads(args, *state_of(args).launcher, state_of(args).function,
                              p.num_tuples * p.slice, p);
}

bool run_scatter_tuples(const KernelArgs& args) {
  TuplesParams p{};
  if (!copy_data(args) || !fill_tuples(args, 0, p)) return false;
  p.updates = args.inputs[2].data;
  if (p.num_tuples == 0) return true;
  return cuda::launch_threads(args, *state_of(args).launcher, state_of(args).function, p.slice, p);
}

Result<std::unique_ptr<IndexState>> make_state(const KernelInit& init, CudaLauncher& launcher,
                                               std::string kernel) {
  const ElementType element = init.inputs[0].tensor.element;
  const size_t bytes = element_size_bytes(element);
  if (element == ElementType::kString || bytes == 0 || bytes > 8) return cuda::no_cuda_kernel(init);
  auto state = std::make_unique<IndexState>();
  state->axis = init.attributes.get_int("axis", 0);
  state->batch_dims = init.attributes.get_int("batch_dims", 0);
  state->reduction = reduction_of(init.attributes.get_string("reduction", "none"));
  const bool reduces = state->reduction != Reduction::kNone;
  kernel += reduces ? "Reduce_" + cuda::input_suffix(init) : "_" + std::to_string(bytes);
  EDDY_RETURN_IF_ERROR(cuda::find_typed_kernel(init, launcher, kernel, *state));
  EDDY_ASSIGN_OR_RETURN(state->copy, launcher.find("eddy_Copy_" + std::to_string(bytes)));
  return state;
}

Result<BoundKernel> bind_gather_elements(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "GatherElements"));
  return cuda::bound(run_gather_elements, std::move(state), true);
}
Result<BoundKernel> bind_gather_tuples(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "GatherTuples"));
  return cuda::bound(run_gather_tuples, std::move(state), true);
}
Result<BoundKernel> bind_scatter_elements(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "ScatterElements"));
  return cuda::bound(run_scatter_elements, std::move(state), true);
}
Result<BoundKernel> bind_scatter_tuples(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "ScatterTuples"));
  return cuda::bound(run_scatter_tuples, std::move(state), true);
}

}  // namespace

void add_indices_cuda(KernelRegistry& registry, CudaLauncher& launcher) {
  cuda::add_kernel(registry, launcher, "GatherElements", bind_gather_elements);
  cuda::add_kernel(registry, launcher, "GatherND", bind_gather_tuples);
  cuda::add_kernel(registry, launcher, "Scatter", bind_scatter_elements);
  cuda::add_kernel(registry, launcher, "ScatterElements", bind_scatter_elements);
  cuda::add_kernel(registry, launcher, "ScatterND", bind_scatter_tuples);
}

}  // namespace eddy
