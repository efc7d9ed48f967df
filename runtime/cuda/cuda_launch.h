// launch_grid: one kernel of ours on a stream; in a capture, by programmatic dependent launch.
//
// A kernel that is launched so may begin while the one before it in its stream still runs, and
// waits by itself for its end (ops/cuda/device/grid_order_inl.h, first of all in every kernel of
// ours). Between kernels of one stream the edges of the captured graph are programmatic then,
// everywhere else they are whole, and order is the same. What it is for: a loop's body of 10
// kernels takes 9.7 µs an iteration instead of 12.2, one of 50 takes 33 instead of 48 (H200).
//
// Only in captures, where the launches cost the host nothing, so the time between kernels counts;
// launched one by one, kernels come further apart than that. Only kernels that wait: those of
// ops/cuda; libraries launch their own.
// Only where the context says so, and that is found out once (programmatic_launch.h).
//
// Every launch is given its stream's guard (launch_guards.h), which kernels that compute look at
// first (is_called_off, ops/cuda/device/grid_order_inl.h); null but in a body that holds several
// iterations.
//
// Errors: CudaContext::check. Threads: any, with the context current.
#pragma once

#include "runtime/cuda/cuda_context.h"

namespace eddy {

// `params`: the kernel's first parameter, a struct; copied by the driver.
Status launch_grid(CudaContext& context, CuFunction function, uint32_t num_blocks,
                   uint32_t num_threads, const void* params, CuStream stream);

}  // namespace eddy
