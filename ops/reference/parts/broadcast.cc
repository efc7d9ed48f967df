#include "ops/reference/parts/broadcast.h"

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

}  // namespace eddy
