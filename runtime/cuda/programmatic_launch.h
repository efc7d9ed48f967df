// allow_programmatic_launch: lets kernels of a context be launched programmatically
// (cuda_launch.h), if the device can and the driver takes a graph with such edges wherever a
// program's has them: in streams that part and meet, beside copies, in loops and branches and
// behind them.
//
// The graph is made and dropped, not launched; its copies are within device memory. Where it fails,
// all stays as it was, and the status says why: kUnsupported where the device or its driver lacks
// what it needs.
// Threads: that which makes the device. Cost: an instantiation, a block of `memory`, the device's.
#pragma once

#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/cuda_graph_capture.h"
#include "runtime/device/device.h"

namespace eddy {

Status allow_programmatic_launch(CudaContext& context, Allocator& memory,
                                 const CudaLoopKernels& kernels);

}  // namespace eddy
