// The recurrent cell that a search found, over a long sequence.
// (Zoph and Le 2016, "Neural architecture search with reinforcement learning", figure 8.)
//
// Inputs `x` float[steps, batch, hidden], `steps`; outputs `h` (a row a step), `c` at the end.
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct NasRnnSize {
  int64_t steps = 1000;
  int64_t hidden = 256;
  int64_t batch = 1;
  uint64_t seed = 2;
};
Model make_nas_rnn(const NasRnnSize& size);

}  // namespace eddy::dynamic
