// add_cuda_transfers: the kernels of eddy.ToDevice and eddy.ToHost on a GPU: copies enqueued on the
// stream they are given, that never block.
//
// A copy engine reads and writes page-locked memory only. Values that Eddy made on the host live
// there already and are copied as they are. Other memory (a caller's, a constant's, a loop's
// counter) is read when the copy is enqueued, through staging blocks that go back to their pool
// once the stream has passed; so it may change or go afterwards. More than kMostBytesAtOnce of it
// is not read by a thread that may not wait (no_waiting.h). A number by itself, such as a loop's
// counter, is moved by a kernel, which has it in its parameters where it is read when it is
// enqueued. A caller's memory on a GPU is copied as it is, too. ToHost writes page-locked memory,
// or a caller's on a GPU that is bound for an output (Call::bind_device_output); up to
// kMostBytesByKernel a kernel of ours does, where there is one: what a host's decision waits for is
// small, and a copy engine takes longer to begin than the kernel takes to end (a 4-byte copy and
// learning of its end 11.8 µs, a word that a kernel writes 7.5, H200).
//
// `device` outlives every kernel bound through the registry.
// Errors: kResourceExhausted when staging memory is out; what the driver answers.
#pragma once

#include "ops/contract/registry.h"
#include "runtime/cuda/cuda_device.h"

namespace eddy {

constexpr size_t kMostBytesByKernel = 4096;
constexpr size_t kMostBytesAtOnce = size_t{64} << 10;

// Where the device has no kernel for copies all are the copy engine's.
void add_cuda_transfers(KernelRegistry& registry, CudaDevice& device);

}  // namespace eddy
