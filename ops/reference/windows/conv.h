// The plain convolutions, also for fast kernels that meet a shape they were not made for.
#pragma once

#include "ops/contract/kernel.h"

namespace eddy {

Result<BoundKernel> bind_conv_reference(const KernelInit& init);
Result<BoundKernel> bind_swapped_conv_reference(const KernelInit& init);
Result<BoundKernel> bind_conv_transpose_reference(const KernelInit& init);

}  // namespace eddy
