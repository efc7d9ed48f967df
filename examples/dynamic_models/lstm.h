// A stack of LSTM layers as one loop over the steps of a sequence; all layers are in its body.
// (Hochreiter and Schmidhuber 1997; the loop benchmark of dynamic neural network compilers.)
//
// Inputs `x` float[steps, batch, hidden], `steps`; outputs `h` (the last layer's, a row a step)
// and `c` (the last layer's, at the end).
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct LstmSize {
  int64_t layers = 10;
  int64_t steps = 64;
  int64_t hidden = 256;
  int64_t batch = 1;
  uint64_t seed = 1;
};
Model make_lstm(const LstmSize& size);

}  // namespace eddy::dynamic
