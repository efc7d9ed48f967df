// Random: a small seeded generator (xoshiro256**, Blackman and Vigna 2018; seeded by splitmix64).
//
// Same seed, same sequence, on every platform; the standard library's distributions give no such
// promise. Not for cryptography. Every seed that a test or a command uses is printed.
#pragma once

#include <cstdint>

#include "graph/base/check.h"

namespace eddy {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
    EDDY_DCHECK((state_[0] | state_[1] | state_[2] | state_[3]) != 0) << "zeros stay zeros";
  }

  uint64_t next() {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); bound > 0. The bias is below bound / 2^64.
  uint64_t below(uint64_t bound) {
    EDDY_DCHECK(bound > 0) << "no number is below 0";
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  // Uniform in [low, high).
  float uniform(float low, float high) {
    EDDY_DCHECK(low <= high) << low << " to " << high;
    return static_cast<float>(low + (static_cast<double>(high) - low) * uniform());
  }

 private:
  static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  uint64_t state_[4];
};

}  // namespace eddy
