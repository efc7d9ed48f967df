// A deep equilibrium model: one layer, applied until it no longer changes its state.
// (Bai et al. 2019; solved by plain iteration of z = tanh(z W + x U + bias).)
//
// The loop ends when no element has moved by `tolerance` or more, or at `limit`. Inputs `x`
// float[batch, hidden], `tolerance`, `limit`; outputs `changes` (the largest of every step), `z`.
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct FixedPointSize {
  int64_t hidden = 256;
  int64_t limit = 200;
  float tolerance = 1e-4f;
  int64_t batch = 1;
  uint64_t seed = 7;
};
Model make_fixed_point(const FixedPointSize& size);

}  // namespace eddy::dynamic
