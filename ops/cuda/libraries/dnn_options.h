// DnnOptions: what is chosen of cuDNN for a device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cuda/libraries/kept_choices.h"

namespace eddy {

// Pools and norms of fewer elements than these run on our own kernels: their time is the launch's,
// and loops around them stay such that their bodies can be guarded (graph/loops/unrolling.h).
// `gpu_report --part libraries` measures them: of pools the library wins at the smallest size
// there, 64 x 14 x 14 (2.5 µs, ours 4.0), of norms from 32 x 64 x 14 x 14 on (3.2 and 3.9; of 64 x
// 56 x 56 2.9 and 2.8; H200).
inline constexpr int64_t kDnnLeastPoolElements = 64 * 14 * 14;
inline constexpr int64_t kDnnLeastNormElements = 32 * kDnnLeastPoolElements;

struct DnnOptions {
  bool allows_tf32 = false;  // float32 products may round their operands to 10 bits
  size_t max_workspace_bytes = size_t{256} << 20;
  size_t max_plans = 1024;                              // of a family; some KiB each
  int64_t least_pool_elements = kDnnLeastPoolElements;  // of the input
  int64_t least_norm_elements = kDnnLeastNormElements;
  // Where the algorithms of convolutions are kept that have been measured to be the fastest; null:
  // none is measured, and the library's first answer is taken. Outlives the library.
  KeptChoices* choices_or_null = nullptr;
};

}  // namespace eddy
