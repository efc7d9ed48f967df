// The frame of persistent loops, around a body whose text persistent_text.h makes: one block runs a
// whole loop, from the first iteration to the last, and keeps what it carries in its own memory.
//
// A body has
//   Memory, Scratch                  its values; memory for reductions of rows that are not short
//   enter, before, after, advance, leave(p, block, memory[, scratch])   its phases (block_inl.h)
//   goes_on(p, memory)               the predicate
//   count(memory, number)            takes the number of the iteration that begins
//
// `stop` and `progress` are in host memory: a posted write an iteration and a read every
// kRoundsOfALook-th, by one thread. A read costs what the bus costs, a µs or more, which is longer
// than a short iteration, and one that is in flight holds up the next: so the value read is used an
// iteration later, and a loop that is stopped ends within kRoundsOfALook + 1 iterations.
// Compiled by NVRTC when a program is bound, and by the host's compiler and nvcc in tests.
#pragma once

#include "ops/cuda/elementwise/elementwise_inl.h"
#include "ops/cuda/elementwise/fused_inl.h"
#include "ops/cuda/reduce/row_block_inl.h"

namespace eddy::cuda {

template <typename Body>
struct PersistentLoop {
  struct Shared {
    typename Body::Memory values;
    typename Body::Scratch scratch;
    int64_t count;
    bool goes_on;
  };

  static constexpr int64_t kRoundsOfALook = 8;

  // Between the look at `goes_on` and its next writing there is a barrier: that of the count.
  EDDY_HD static void run(const LoopParams& p, const Block& block, Shared& s) {
    uint32_t stop = 0;  // of the first thread
    block.each([&](int thread) {
      if (thread != 0) return;
      stop = *p.stop;
      set_count(p, s, 0);
    });
    Body::enter(p, block, s.values);
    for (;;) {
      Body::before(p, block, s.values, s.scratch);
      block.each([&](int thread) {
        if (thread != 0) return;
        s.goes_on = stop == 0 && s.count < p.limit && Body::goes_on(p, s.values);
        if (s.count % kRoundsOfALook == 0) stop = *p.stop;
      });
      if (!s.goes_on) break;
      Body::after(p, block, s.values, s.scratch);
      Body::advance(p, block, s.values);
      block.each([&](int thread) {
        if (thread == 0) set_count(p, s, s.count + 1);
      });
    }
    Body::leave(p, block, s.values);
    block.each([&](int thread) {
      if (thread == 0) p.progress[1] = 1;
    });
  }

 private:
  EDDY_HD static void set_count(const LoopParams& p, Shared& s, int64_t count) {
    s.count = count;
    p.progress[0] = count;
    Body::count(s.values, count);
  }
};

}  // namespace eddy::cuda

#ifdef __CUDACC__
#define EDDY_PERSISTENT_KERNEL(name, Body)                                      \
  extern "C" __global__ void __launch_bounds__(eddy::cuda::kBlockThreads)       \
      name(const __grid_constant__ eddy::cuda::LoopParams params) {             \
    eddy::cuda::await_earlier_grids();                                          \
    __shared__ eddy::cuda::PersistentLoop<Body>::Shared shared;                 \
    eddy::cuda::PersistentLoop<Body>::run(params, eddy::cuda::Block{}, shared); \
  }
#else
#include <cstring>

namespace eddy::cuda {

// Shared memory holds what no body may rely on.
template <typename Body>
void run_persistent_on_host(const void* params) {
  typename PersistentLoop<Body>::Shared shared;
  std::memset(static_cast<void*>(&shared), 0xa5, sizeof(shared));
  PersistentLoop<Body>::run(*static_cast<const LoopParams*>(params), Block{}, shared);
}

}  // namespace eddy::cuda

#define EDDY_PERSISTENT_KERNEL(name, Body)                       \
  extern "C" void name(const void* params, uint64_t, uint64_t) { \
    eddy::cuda::run_persistent_on_host<Body>(params);            \
  }
#endif
