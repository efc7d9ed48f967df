#include "ops/cpu/broadcast_plan.h"

#include "graph/base/check.h"

namespace eddy::cpu {
namespace {

using Strides = std::array<std::array<int64_t, kMaxRank>, kMaxBroadcastInputs>;

// Row-major strides of each input, aligned at the output's last dimension; 0 where repeated.
Strides aligned_strides(const Dims& output, std::span<const Dims> inputs) {
  Strides strides{};
  for (size_t i = 0; i < inputs.size(); ++i) {
    int64_t stride = 1;
    const int shift = output.rank() - inputs[i].rank();
    EDDY_DCHECK(shift >= 0) << "input " << i << " has a higher rank than the output";
    for (int axis = output.rank() - 1; axis >= shift; --axis) {
      const int64_t dim = inputs[i][axis - shift];
      EDDY_DCHECK(dim == 1 || dim == output[axis])
          << "input " << i << " does not broadcast at axis " << axis << ": " << dim;
      strides[i][static_cast<size_t>(axis)] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
  }
  return strides;
}

}  // namespace

BroadcastPlan plan_broadcast(const Dims& output, std::span<const Dims> inputs) {
  EDDY_CHECK(inputs.size() <= kMaxBroadcastInputs) << inputs.size() << " inputs are broadcast";
  const Strides strides = aligned_strides(output, inputs);
  BroadcastPlan plan;
  plan.num_inputs = static_cast<int>(inputs.size());
  plan.rank = 0;
  for (int axis = 0; axis < output.rank(); ++axis) {
    if (output[axis] == 1) continue;
    const size_t a = static_cast<size_t>(axis);
    // Merge with the dimension before when a step there is a whole pass here, for every input.
    bool merges = plan.rank > 0;
    for (size_t i = 0; merges && i < inputs.size(); ++i) {
      merges = plan.strides[i][static_cast<size_t>(plan.rank - 1)] == strides[i][a] * output[axis];
    }
    if (!merges) {
      plan.dims[static_cast<size_t>(plan.rank++)] = 1;
    }
    const size_t last = static_cast<size_t>(plan.rank - 1);
    plan.dims[last] *= output[axis];
    for (size_t i = 0; i < inputs.size(); ++i) plan.strides[i][last] = strides[i][a];
  }
  if (plan.rank == 0) {
    plan.rank = 1;
    plan.dims[0] = 1;
  }
  return plan;
}

}  // namespace eddy::cpu
