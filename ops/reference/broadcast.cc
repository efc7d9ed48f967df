#include "ops/reference/broadcast.h"

#include "graph/base/check.h"

namespace eddy {

BroadcastIndex::BroadcastIndex(const Dims& input, std::span<const int64_t> output)
    : rank_(static_cast<int>(output.size())) {
  const int shift = rank_ - input.rank();
  EDDY_DCHECK(shift >= 0) << "an input of rank " << input.rank() << ", an output of " << rank_;
  int64_t stride = 1;
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    const size_t a = static_cast<size_t>(axis);
    const int64_t dim = axis >= shift ? input[axis - shift] : 1;
    EDDY_DCHECK(dim == 1 || dim == output[a]) << dim << " does not broadcast to " << output[a];
    dims_[a] = output[a];
    strides_[a] = dim == 1 ? 0 : stride;
    stride *= dim;
    if (dim != output[a]) is_same_ = false;
  }
}

LegacyAlignment LegacyAlignment::of(const KernelInit& init) {
  if (init.op.since_version >= 7 || !init.attributes.has("axis")) return {};
  if (init.attributes.get_int("broadcast", 0) == 0) return {};  // then it means nothing
  return {true, init.attributes.get_int("axis", 0)};
}

Dims LegacyAlignment::align(const TensorView& input, int32_t output_rank) const {
  Dims dims(input.shape());
  if (!has_axis || input.rank == 0) return dims;
  const int64_t start = axis < 0 ? axis + output_rank : axis;
  while (start + dims.rank() < output_rank) dims.push_back(1);
  return dims;
}

}  // namespace eddy
