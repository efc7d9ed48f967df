// The device's half of long rows, lines and windows: one kernel for each line of
// line_list.h.
#include "ops/cuda/device_inl.h"
#include "ops/cuda/line_inl.h"
#include "ops/cuda/line_list.h"
#include "ops/cuda/resize_inl.h"
#include "ops/cuda/row_block_inl.h"
#include "ops/cuda/scan_inl.h"
#include "ops/cuda/window_inl.h"

namespace eddy::cuda {

EDDY_CUDA_LINE_THREADS(EDDY_DEVICE_THREADS)
EDDY_CUDA_LINE_BLOCKS(EDDY_DEVICE_BLOCKS)

}  // namespace eddy::cuda
