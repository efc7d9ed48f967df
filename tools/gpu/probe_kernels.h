// The kernel of the questions to a driver (driver_part.h): one thread that does one thing, for the
// device (probes.cu) and for tests on the host.
//
//   spin     until *word is not 0, `most` ns at most; *result: 1 where the word ended it
//   read     *word, `most` times, each read behind the last one; *result: ns of all
//   write    *word += 1, seen by the host from then on
//   decide   sets `handle` twice: to 1, then to whether ++*counter is below `most`
//   trap     faults
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define EDDY_PROBE __host__ __device__ inline
#else
#define EDDY_PROBE inline
#endif

namespace eddy::cuda {

enum class ProbeOp : int64_t { kSpin, kRead, kWrite, kDecide, kTrap };

struct ProbeParams {
  ProbeOp op = ProbeOp::kWrite;
  volatile uint32_t* word = nullptr;  // in host or device memory, as `result` is
  uint64_t* result = nullptr;
  uint64_t most = 0;
  uint64_t handle = 0;
  int64_t* counter = nullptr;
};
static_assert(sizeof(ProbeParams) == 48);

// Device: now_ns() -> uint64_t, fence(), set(handle, value), trap().
template <typename Device>
EDDY_PROBE void probe(const ProbeParams& p, Device device) {
  if (p.op == ProbeOp::kSpin) {
    const uint64_t start = device.now_ns();
    while (*p.word == 0 && device.now_ns() - start < p.most) {
    }
    *p.result = *p.word != 0 ? 1 : 0;
    device.fence();
  } else if (p.op == ProbeOp::kRead) {
    const uint64_t start = device.now_ns();
    uint32_t sum = 0;
    // The next read's address hangs on the last one's value, which is 0.
    for (uint64_t i = 0; i < p.most; ++i) sum += *(p.word + (sum & 1));
    *p.result = device.now_ns() - start + (sum & 1);
    device.fence();
  } else if (p.op == ProbeOp::kWrite) {
    device.fence();
    *p.word = *p.word + 1;
    device.fence();
  } else if (p.op == ProbeOp::kDecide) {
    device.set(p.handle, 1);
    device.set(p.handle, static_cast<uint64_t>(++*p.counter) < p.most ? 1u : 0u);
  } else {
    device.trap();
  }
}

}  // namespace eddy::cuda
