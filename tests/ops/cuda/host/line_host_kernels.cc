#include "ops/cuda/names/line_list.h"
#include "ops/cuda/reduce/line_inl.h"
#include "ops/cuda/reduce/row_block_inl.h"
#include "ops/cuda/reduce/row_warp_inl.h"
#include "ops/cuda/reduce/scan_inl.h"
#include "ops/cuda/windows/channel_conv_inl.h"
#include "ops/cuda/windows/resize_inl.h"
#include "ops/cuda/windows/window_inl.h"
#include "tests/ops/cuda/host/host_kernels.h"

namespace eddy::testing {

void add_line_host_kernels(HostKernels& kernels) {
  using namespace cuda;  // the types of the list
  EDDY_CUDA_LINE_THREADS(EDDY_HOST_THREADS)
  EDDY_CUDA_LINE_BLOCKS(EDDY_HOST_BLOCKS)
}

}  // namespace eddy::testing
