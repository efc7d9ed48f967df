// await_earlier_grids, is_called_off: what every kernel of ours does first.
//
// await_earlier_grids is the kernel's half of programmatic dependent launch; the launch's half is
// runtime/cuda/cuda_launch.h.
//
// A kernel that is launched so may begin while the one before it in its stream still runs: its
// blocks are made and its code is fetched, and here it waits until everything that came before has
// ended and what that wrote can be seen. Order stays the stream's; what is saved is the time
// between the end of one kernel of a chain and the start of the next.
//
// Contract: the first statement of every kernel of ours. Nothing may be read or written before it
// but the parameters, also by kernels that need no earlier result, because order is handed on from
// each kernel to the next: C waits for B alone, and B has ended only after A because B has waited.
// Where a kernel was launched in plain order it costs an instruction; before sm_90 nothing, and
// there the host launches in plain order.
//
// is_called_off: the second parameter of every kernel that computes values is a guard, null or a
// word on the device. Where that word is 0 the launch belongs to an iteration that the loop around
// it does not have (runtime/device/graph_capture.h, begin_again), and the kernel leaves all as it
// is. The kernels of loop_control.h get it among their parameters; a persistent loop holds its own
// test. Source: CUDA C++ Programming Guide, Programmatic Dependent Launch and Synchronization.
#pragma once

#ifdef __CUDACC__
namespace eddy::cuda {

__device__ inline void await_earlier_grids() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The next kernel may begin to wait once all blocks have called this. Not for kernels that run
// long: a waiting grid takes a place on the device.
__device__ inline void let_next_grid_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// All threads of a grid see the same value: no kernel writes the word while the grid runs.
__device__ inline bool is_called_off(const unsigned int* guard) {
  return guard != nullptr && *static_cast<const volatile unsigned int*>(guard) == 0;
}

}  // namespace eddy::cuda
#endif
