// The tables of host_launcher.h, one source for each list of kernels.
#pragma once

#include <cstring>
#include <memory>

#include "ops/cuda/device/block_inl.h"
#include "tests/ops/cuda/host/host_launcher.h"

namespace eddy::testing {

void add_activation_host_kernels(HostKernels& kernels);
void add_elementwise_host_kernels(HostKernels& kernels);
void add_movement_host_kernels(HostKernels& kernels);
void add_line_host_kernels(HostKernels& kernels);
void add_product_host_kernels(HostKernels& kernels);

template <auto kBody, typename Params>
void run_thread_body(const void* params, uint64_t first, uint64_t step) {
  kBody(*static_cast<const Params*>(params), first, step);
}

// Shared memory holds what no body may rely on.
template <typename Body>
void run_block_body(const void* params, uint64_t index, uint64_t count) {
  const auto shared = std::make_unique<typename Body::Shared>();
  std::memset(static_cast<void*>(shared.get()), 0xa5, sizeof(*shared));
  Body::run(*static_cast<const typename Body::Params*>(params), cuda::Block{index, count}, *shared);
}

#define EDDY_HOST_THREADS(name, Params, ...) \
  kernels["eddy_" #name] = {sizeof(Params), run_thread_body<&__VA_ARGS__, Params>, nullptr};
#define EDDY_HOST_BLOCKS(name, ...) \
  kernels["eddy_" #name] = {sizeof(__VA_ARGS__::Params), nullptr, run_block_body<__VA_ARGS__>};

}  // namespace eddy::testing
