// DnnOptions: what is chosen of cuDNN for a device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cuda/libraries/kept_choices.h"

namespace eddy {

// Pools and norms of fewer elements than this run on our own kernels: their time is the launch's,
// and loops around them stay such that their bodies can be guarded (graph/loops/unrolling.h).
// To be measured: `gpu_report --part dnn`.
inline constexpr int64_t kDnnLeastElements = int64_t{1} << 19;

struct DnnOptions {
  bool allows_tf32 = false;  // float32 products may round their operands to 10 bits
  size_t max_workspace_bytes = size_t{256} << 20;
  size_t max_plans = 1024;                     // of a family; some KiB each
  int64_t least_elements = kDnnLeastElements;  // of a pool's or a norm's input
  // Where the algorithms of convolutions are kept that have been measured to be the fastest; null:
  // none is measured, and the library's first answer is taken. Outlives the library.
  KeptChoices* choices_or_null = nullptr;
};

}  // namespace eddy
