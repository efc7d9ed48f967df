// Powers: what norms are made of, by whole vectors of doubles.
//
//   raise   to[i] = |from[i]| to the power p        by products: p of 2 is one
//   root    to[i] = sums[i] to the power 1 / p      by square roots where p is a power of 2
//
// In double, as sums of powers of floats leave the range of floats long before their root does.
// Determinism: a result depends on its own element only. Threads: pure.
#pragma once

#include <cstdint>

#include "ops/cpu/loops/loops.h"

namespace eddy::cpu {

class Powers {
 public:
  // Contract: p >= 1.
  explicit Powers(int64_t p);

  void raise(const float* from, double* to, int64_t count) const;
  // Writes to `sums`, too.
  void root(double* sums, float* to, int64_t count) const;
  // totals[i] += values[i].
  void add(const double* values, double* totals, int64_t count) const;

  static constexpr int64_t kChunk = 256;  // what callers should raise at a time

 private:
  void raise_chunk(const float* from, double* to, int64_t count) const;

  int64_t p_;
  CastLoop widen_, narrow_;
  UnaryLoop abs_, sqrt_;
  BinaryLoop multiply_, add_, power_;
};

}  // namespace eddy::cpu
