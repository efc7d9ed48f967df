// Activation: what a convolution makes of each of its results at last, by an elementwise loop over
// those that it has just stored.
#pragma once

#include <cstdint>

#include "ops/cpu/loops/loops.h"

namespace eddy::cpu {

struct Activation {
  UnaryLoop loop = nullptr;
  float parameters[2] = {};

  void apply(float* y, int64_t count) const { loop(y, y, count, parameters); }
};

}  // namespace eddy::cpu
