#include "ops/cpu/powers.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy::cpu {
namespace {

constexpr auto kFloat = static_cast<size_t>(LoopType::kFloat);
constexpr auto kDouble = static_cast<size_t>(LoopType::kDouble);
constexpr double kNoParameters[2] = {};

const BinaryLoops& binary(BinaryOp op) {
  return loop_set().binary[static_cast<size_t>(op)][kDouble];
}
UnaryLoop unary(UnaryOp op) { return loop_set().unary[static_cast<size_t>(op)][kDouble]; }

}  // namespace

Powers::Powers(int64_t p)
    : p_(p),
      widen_(loop_set().cast[kFloat][kDouble]),
      narrow_(loop_set().cast[kDouble][kFloat]),
      abs_(unary(UnaryOp::kAbs)),
      sqrt_(unary(UnaryOp::kSqrt)),
      multiply_(binary(BinaryOp::kMul).both),
      add_(binary(BinaryOp::kAdd).both),
      power_(binary(BinaryOp::kPow).right_scalar) {
  EDDY_CHECK(p >= 1) << "a norm of power " << p;
  EDDY_CHECK(widen_ && narrow_ && abs_ && sqrt_ && multiply_ && add_ && power_)
      << "no loops of doubles";
}

void Powers::raise(const float* from, double* to, int64_t count) const {
  for (int64_t i = 0; i < count; i += kChunk) {
    raise_chunk(from + i, to + i, std::min(kChunk, count - i));
  }
}

void Powers::raise_chunk(const float* from, double* to, int64_t count) const {
  widen_(from, to, count);
  int64_t rest = p_;
  if (rest % 2 != 0) abs_(to, to, count, kNoParameters);
  for (; rest % 2 == 0; rest /= 2) multiply_(to, to, to, count);
  if (rest == 1) return;
  double square[kChunk];
  std::copy_n(to, count, square);
  while ((rest /= 2) > 0) {
    multiply_(square, square, square, count);
    if (rest % 2 != 0) multiply_(to, square, to, count);
  }
}

void Powers::root(double* sums, float* to, int64_t count) const {
  if ((p_ & (p_ - 1)) == 0) {
    for (int64_t rest = p_; rest > 1; rest /= 2) sqrt_(sums, sums, count, kNoParameters);
  } else {
    const double inverse = 1 / static_cast<double>(p_);
    power_(sums, &inverse, sums, count);
  }
  narrow_(sums, to, count);
}

void Powers::add(const double* values, double* totals, int64_t count) const {
  add_(totals, values, totals, count);
}

}  // namespace eddy::cpu
