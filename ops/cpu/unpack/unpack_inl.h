// The loops, compiled once for each instruction set by the files that include this.
#pragma once

#include "ops/cpu/unpack/unpack.h"

namespace eddy::cpu {
namespace {

// One vector of columns after the other, whose scales and zero points stay in registers.
template <int kBits, int kLanes>
void unpack(const uint8_t* __restrict in, int64_t num_bytes, int64_t width,
            const float* __restrict scale, const uint8_t* __restrict zero, float* __restrict out) {
  constexpr int kEach = 8 / kBits, kMask = (1 << kBits) - 1;
  for (int64_t first = 0; first < width; first += kLanes) {
    float factors[kLanes], zeros[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      factors[i] = scale[first + i];
      zeros[i] = static_cast<float>(zero[first + i]);
    }
    for (int64_t row = 0; row < num_bytes; ++row) {
      const uint8_t* from = in + row * width + first;
      for (int part = 0; part < kEach; ++part) {
        float* to = out + (row * kEach + part) * width + first;
        for (int64_t i = 0; i < kLanes; ++i) {
          const int weight = (from[i] >> (part * kBits)) & kMask;
          to[i] = (static_cast<float>(weight) - zeros[i]) * factors[i];
        }
      }
    }
  }
}

// kLanes divides the width of the instruction set's panels.
template <int kLanes>
constexpr UnpackLoops kUnpackLoops = {unpack<2, kLanes>, unpack<4, kLanes>, unpack<8, kLanes>};

}  // namespace
}  // namespace eddy::cpu
