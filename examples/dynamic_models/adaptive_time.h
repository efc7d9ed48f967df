// A recurrent cell that decides at every step of its input how long to ponder: a loop in a loop.
// (Graves 2016, "Adaptive computation time for recurrent neural networks".)
//
// Each pondering step gives the probability that it is the last; the inner loop ends when
// these add up to 0.99 in every row of the batch, or at `patience`. Rows that are done keep their
// state. Inputs `x` float[steps, batch, hidden], `steps`; outputs `rows` (the mixed state after
// every step), `ponders` int64[steps], `total`.
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct AdaptiveTimeSize {
  int64_t steps = 32;
  int64_t hidden = 256;
  int64_t patience = 12;
  int64_t batch = 1;
  uint64_t seed = 11;
};
Model make_adaptive_time(const AdaptiveTimeSize& size);

}  // namespace eddy::dynamic
