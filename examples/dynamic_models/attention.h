// One attention layer that generates from its own output, with caches of keys and values that
// grow by one position a step (the decoder of Vaswani et al. 2017, as served).
//
// Inputs `x` float[batch, heads * width], `steps`; outputs `rows` (the layer's output at every
// step), `keys` and `values` float[batch, heads, steps, width].
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct AttentionSize {
  int64_t heads = 12;
  int64_t width = 64;  // of a head
  int64_t steps = 32;
  int64_t batch = 1;
  uint64_t seed = 3;
};
Model make_attention(const AttentionSize& size);

}  // namespace eddy::dynamic
