// HostLauncher: CUDA kernels without CUDA: their bodies, compiled by the host's compiler, called
// for every thread of the grid, blocks in a seeded random order.
//
// What it shows: indexing, broadcasting, packing, tails, arithmetic. What it does not: the device's
// own math library, and anything of its memory.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "graph/base/random.h"
#include "ops/cuda/launcher.h"
#include "ops/cuda/params.h"

namespace eddy::testing {

// One thread: (parameters, first, step). Parameters are the kernel's own struct.
using HostKernel = void (*)(const void* params, uint64_t first, uint64_t step);

// Every kernel of the image, by its full name ("eddy_Add_f32").
std::map<std::string, HostKernel, std::less<>> host_kernels();

// Calls the kernel for every thread of `num_blocks` blocks.
void run_host_kernel(HostKernel kernel, uint32_t num_blocks, const void* params, Random& random);

class HostLauncher : public CudaLauncher {
 public:
  explicit HostLauncher(uint64_t seed) : random_(seed) {}
  Result<CudaFunction> find(std::string_view name) override;
  Status launch(CudaFunction function, uint32_t num_blocks, const void* params,
                NativeStream stream) override;
  // Few, so that threads have several items.
  uint32_t num_resident_blocks() const override { return 1; }
  uint64_t num_launches() const { return num_launches_; }

 private:
  const std::map<std::string, HostKernel, std::less<>> kernels_ = host_kernels();
  Random random_;
  uint64_t num_launches_ = 0;
};

}  // namespace eddy::testing
