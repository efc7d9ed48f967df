// Kernels of the report's own. eddy_rival_trap: hands a number on, and faults the n-th time that it
// runs (lost_part.cc). eddy_rival_step: the kernel of the graphs by hand that Eddy's loops are
// measured against (raw_graphs.h): one thread that works, counts, tests and decides, so a round has
// no kernel that it could do without. For the device (rival_kernels.cu) and for tests on the host.
//
//   work      *total += 1, where there is a total
//   loop      counts a round; *counter is 0 again behind the last, so a launch needs no start
//   re-arm    sets a loop inside to run again: a handle's default is taken once a launch
//   pick      which of a case's branches is next
//   tell      one more launch has ended, for the host that spins on the word
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define EDDY_RIVAL __host__ __device__ inline
#else
#define EDDY_RIVAL inline
#endif

namespace eddy::cuda {

struct RivalParams {
  int64_t* total = nullptr;    // in device memory
  int64_t* counter = nullptr;  // likewise; null: there is no loop to decide
  int64_t limit = 0;
  uint64_t loop = 0;        // the conditional handles
  uint64_t inner_loop = 0;  // 0: none is re-armed
  uint64_t branch = 0;      // 0: nothing is picked
  int64_t num_branches = 0;
  int64_t* launches = nullptr;        // in device memory; null: not counted
  volatile int64_t* ended = nullptr;  // in host memory that the device sees: as many launches
};
static_assert(sizeof(RivalParams) == 72);

struct TrapParams {
  float* out = nullptr;
  const float* in = nullptr;
  int64_t* count = nullptr;  // of its executions, in device memory
  int64_t fatal = 0;         // the one that faults
};
static_assert(sizeof(TrapParams) == 32);

// Fault: () -> void.
template <typename Fault>
EDDY_RIVAL void rival_trap(const TrapParams& p, Fault fault) {
  *p.out = *p.in;
  if (++*p.count == p.fatal) fault();
}

// Set: (handle, value) -> void. Fence: () -> void, behind which all that was written is seen.
template <typename Set, typename Fence>
EDDY_RIVAL void rival_step(const RivalParams& p, Set set, Fence fence) {
  if (p.total != nullptr) ++*p.total;
  if (p.counter != nullptr) {
    const int64_t count = *p.counter + 1;
    const bool goes_on = count < p.limit;
    *p.counter = goes_on ? count : 0;
    set(p.loop, goes_on ? 1u : 0u);
    if (p.inner_loop != 0 && goes_on) set(p.inner_loop, 1u);
    if (p.branch != 0) set(p.branch, static_cast<uint32_t>(count % p.num_branches));
  }
  if (p.launches != nullptr) {
    const int64_t launches = ++*p.launches;
    fence();
    *p.ended = launches;
  }
}

}  // namespace eddy::cuda
