// What nvcc compiles of CUB and of the runtime library below it, as load_cub() (cub.h) puts it into
// its table. Results are the runtime library's error numbers.
#pragma once

#include "ops/cuda/reduce/cub_calls.h"

namespace eddy::cuda {

int cub_sum(const SumCall& call, void* scratch, size_t* scratch_bytes, void* stream);
int cub_extreme(const ExtremeCall& call, void* scratch, size_t* scratch_bytes, void* stream);
int cub_cum_sum(const CumSumCall& call, void* scratch, size_t* scratch_bytes, void* stream);
int cub_top_k(const TopKCall& call, void* scratch, size_t* scratch_bytes, void* stream);

const char* cub_error_text(int status);
// CUB_VERSION: 300001 for 3.0.1.
int cub_version();

// Whether the runtime library finds a driver that it can work with, and their CUDA versions
// (13000 for 13.0; no driver: 0).
struct CubRuntime {
  int status;
  int driver_version;
  int runtime_version;
};
CubRuntime cub_runtime();

}  // namespace eddy::cuda
