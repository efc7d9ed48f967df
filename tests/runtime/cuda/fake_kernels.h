// define_host_kernels defines the kernels of ops/cuda in a fake driver; they run on the host.
#pragma once

#include "tests/ops/cuda/host/host_launcher.h"
#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {

// `random` gives the order of blocks; it outlives the fake. One kernel runs at a time.
inline void define_host_kernels(FakeCuda& fake, Random& random) {
  for (const auto& [name, kernel] : host_kernels()) {
    fake.define_kernel(name, kernel.params_bytes,
                       [&random, body = kernel](const FakeKernelCall& call) {
                         run_host_kernel(body, call.grid[0], call.params, random);
                       });
    fake.give_guard(name);
  }
}

}  // namespace eddy::testing
