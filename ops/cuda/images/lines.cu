// The device's half of long rows, lines and windows: one kernel for each line of
// line_list.h.
#include "ops/cuda/device/device_inl.h"
#include "ops/cuda/names/line_list.h"
#include "ops/cuda/reduce/line_inl.h"
#include "ops/cuda/reduce/row_block_inl.h"
#include "ops/cuda/reduce/row_warp_inl.h"
#include "ops/cuda/reduce/scan_inl.h"
#include "ops/cuda/windows/channel_conv_inl.h"
#include "ops/cuda/windows/resize_inl.h"
#include "ops/cuda/windows/window_inl.h"

namespace eddy::cuda {

EDDY_CUDA_LINE_THREADS(EDDY_DEVICE_THREADS)
EDDY_CUDA_LINE_BLOCKS(EDDY_DEVICE_BLOCKS)

}  // namespace eddy::cuda
