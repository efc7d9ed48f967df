// add_cuda_transfers: the kernels of eddy.ToDevice and eddy.ToHost on a GPU: copies enqueued on the
// stream they are given, that never block.
//
// A copy engine reads and writes page-locked memory only. Values that Eddy made on the host live
// there already and are copied as they are. Other memory (a caller's, a constant's, a loop's
// counter) is read when the copy is enqueued, through staging blocks that go back to their pool
// once the stream has passed; so it may change or go afterwards. A caller's memory on a GPU is
// copied as it is, too. ToHost writes page-locked memory only.
//
// `device` outlives every kernel bound through the registry.
// Errors: kResourceExhausted when staging memory is out; what the driver answers.
#pragma once

#include "ops/contract/registry.h"
#include "runtime/cuda/cuda_device.h"

namespace eddy {

void add_cuda_transfers(KernelRegistry& registry, CudaDevice& device);

}  // namespace eddy
