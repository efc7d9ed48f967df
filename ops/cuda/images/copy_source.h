// loop_copy_source: the source of one launch of eddy_loop_copy as a kernel of its own.
//
// Why: the kernel of the images interprets its parameters, and each step of that waits for the one
// before it, for code that no other kernel has fetched and for memory. Straight code reads all that
// it needs at once and hands results on in registers: a round of a scalar loop takes 4.5 µs instead
// of 6.6, one with a tanh of 256 x 256 elements 8.9 instead of 11.9 (H200, driver 580).
//
// Contract: pure; launches that differ in addresses and counts alone have one source. It is loaded
// as text, since it decides loops (KernelSource::decides). The same bits as the interpreted launch.
// Errors: kUnsupported where steps share memory in part. Cost: O(steps²).
#pragma once

#include "graph/base/status.h"
#include "ops/cuda/images/loop_control.h"
#include "ops/cuda/text/fused_text.h"

namespace eddy::cuda {

Result<KernelSource> loop_copy_source(const LoopCopyParams& params);

}  // namespace eddy::cuda
