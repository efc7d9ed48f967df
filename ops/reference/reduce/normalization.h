// What the plain and the fast normalizations share.
#pragma once

#include "ops/contract/kernel.h"

namespace eddy {

// X as rows of the axes from `axis` on; the schema has checked the axis.
inline void split_at_axis(const TensorView& x, int64_t axis, int64_t& rows, int64_t& columns) {
  if (axis < 0) axis += x.rank;
  rows = columns = 1;
  for (int i = 0; i < x.rank; ++i) (i < axis ? rows : columns) *= x.dims[i];
}

Result<BoundKernel> bind_layer_normalization_reference(const KernelInit& init);
Result<BoundKernel> bind_rms_normalization_reference(const KernelInit& init);

}  // namespace eddy
