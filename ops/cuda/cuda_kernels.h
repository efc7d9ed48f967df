// add_cuda_kernels: what a CUDA device runs. What is not here runs on the CPU.
//
// What has a kernel has one of our own; products go to cuBLASLt (lt_products.h), convolutions and
// large pools and norms to cuDNN (dnn_library.h), few long lines to CUB (long_lines.h) where those
// are there and have a way. Not here on purpose: attributes of opsets before 7, and types, ranks
// and attributes that a kernel's bind refuses by name.
//
// `launcher` and the libraries outlive every kernel bound through the registry. Errors: binding
// returns kUnsupported for types and versions without a kernel; running passes on errors of the
// launcher or the library. Indices out of range and integer divisions by zero are reported through
// KernelArgs::fault.
#pragma once

#include "ops/contract/registry.h"
#include "ops/cuda/launch/launcher.h"
#include "ops/cuda/libraries/dnn_library.h"
#include "ops/cuda/libraries/lt_products.h"
#include "ops/cuda/reduce/long_lines.h"

namespace eddy {

// Libraries found on this machine; null: our own kernels.
struct CudaLibraries {
  LtProducts* products = nullptr;
  DnnLibrary* dnn = nullptr;
  const LongLines* long_lines = nullptr;
};

void add_cuda_kernels(KernelRegistry& registry, CudaLauncher& launcher,
                      const CudaLibraries& libraries = {});

}  // namespace eddy
