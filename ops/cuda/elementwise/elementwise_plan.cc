#include "ops/cuda/elementwise/elementwise_plan.h"

#include <algorithm>
#include <array>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr uint64_t kPackBytes = 16;

}  // namespace

template <typename Params>
void BroadcastPlan<Params>::add_axis(int64_t size, std::span<const int64_t> strides) {
  EDDY_DCHECK(size >= 0 && strides.size() <= Params::kInputs)
      << "an axis of " << size << " with " << strides.size() << " strides";
  if (size == 1) return;
  if (size == 0) is_empty_ = true;
  Params& p = params_;
  bool continues = p.rank > 0;
  for (size_t i = 0; continues && i < strides.size(); ++i) {
    continues = p.strides[i][p.rank - 1] == size * strides[i];
  }
  if (!continues) {
    if (p.rank == cuda::kMaxAxes) {
      fits_ = false;
      return;
    }
    p.dims[p.rank++] = 1;
  }
  p.dims[p.rank - 1] *= static_cast<uint64_t>(size);
  for (size_t i = 0; i < strides.size(); ++i) p.strides[i][p.rank - 1] = strides[i];
}

template <typename Params>
void BroadcastPlan<Params>::add_broadcast(const TensorView& out, std::span<const TensorView> inputs,
                                          std::span<const TensorView> wholes) {
  EDDY_DCHECK(inputs.size() <= Params::kInputs) << inputs.size() << " inputs are broadcast";
  if (wholes.empty()) wholes = inputs;
  EDDY_DCHECK(wholes.size() == inputs.size()) << wholes.size() << " tensors of parts";
  std::array<int64_t, Params::kInputs> step{};  // elements below the axis, by input
  std::array<std::array<int64_t, Params::kInputs>, kMaxRank> strides{};
  step.fill(1);
  for (int d = out.rank - 1; d >= 0; --d) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int axis = d - (out.rank - inputs[i].rank);
      const int64_t dim = axis >= 0 ? inputs[i].dims[axis] : 1;
      EDDY_DCHECK(dim == 1 || dim == out.dims[d])
          << "input " << i << " does not broadcast at " << d;
      strides[static_cast<size_t>(d)][i] = dim == 1 ? 0 : step[i];
      step[i] *= axis >= 0 ? wholes[i].dims[axis] : 1;
    }
  }
  for (int d = 0; d < out.rank; ++d) {
    add_axis(out.dims[d], std::span(strides[static_cast<size_t>(d)]).first(inputs.size()));
  }
}

template <typename Params>
bool BroadcastPlan<Params>::can_pack(const void* out, std::span<const void* const> inputs) const {
  const auto is_aligned = [](const void* to) {
    return reinterpret_cast<uintptr_t>(to) % kPackBytes == 0;
  };
  if (params_.rank != 1 || !is_aligned(out)) return false;
  if constexpr (requires { params_.more_out; }) {  // those that there are not are null
    if (!std::ranges::all_of(params_.more_out, is_aligned)) return false;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t stride = params_.strides[i][0];
    if (stride != 0 && stride != 1) return false;
    if (stride == 1 && !is_aligned(inputs[i])) return false;
  }
  return true;
}

template <typename Params>
bool BroadcastPlan<Params>::launch(const KernelArgs& args, CudaLauncher& launcher,
                                   CudaFunction function, void* out,
                                   std::span<const void* const> inputs, bool may_pack) {
  if (is_empty_) return true;
  EDDY_DCHECK(fits_) << "axes are missing in a plan that does not fit";
  Params& p = params_;
  if (p.rank == 0) {  // one element
    p.dims[0] = 1;
    p.rank = 1;
  }
  p.count = 1;
  for (int d = 0; d < p.rank; ++d) p.count *= p.dims[d];
  p.out = out;
  std::copy(inputs.begin(), inputs.end(), p.in);
  p.is_aligned = may_pack && can_pack(out, inputs) ? 1 : 0;
  // A thread moves several elements of a pack, so fewer blocks serve; never more than fill the
  // device a few times, the grid-stride loop does the rest.
  constexpr uint64_t kElementsPerThread = 4;
  const uint64_t per_block =
      cuda::kBlockThreads * (p.is_aligned != 0 ? kElementsPerThread : uint64_t{1});
  const uint64_t wanted = (p.count + per_block - 1) / per_block;
  const uint64_t most = uint64_t{4} * launcher.num_resident_blocks();
  const auto num_blocks = static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, most));
  Status status = launcher.launch(function, num_blocks, &p, args.stream);
  return status.is_ok() || args.fail(std::move(status));
}

template class BroadcastPlan<cuda::ElementwiseParams>;
template class BroadcastPlan<cuda::FusedParams>;

}  // namespace eddy
