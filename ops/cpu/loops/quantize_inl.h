// The loops of linear quantization; included by one source file for each instruction set.
#pragma once

#include "ops/cpu/loops/loops.h"
#include "ops/cpu/loops/scalar_ops.h"

namespace eddy::cpu {
namespace {

template <typename Q>
[[gnu::always_inline]] inline Q quantize_one(float x, float scale, float zero) {
  constexpr float kLow = scalar::kIsSigned<Q> ? -128 : 0;
  constexpr float kHigh = scalar::kIsSigned<Q> ? 127 : 255;
  const float y = __builtin_rintf(x / scale) + zero;
  const float raised = y < kLow ? kLow : y;
  const float clamped = raised > kHigh ? kHigh : raised;
  return static_cast<Q>(static_cast<int32_t>(clamped == clamped ? clamped : zero));
}

template <typename Q>
void quantize_loop(const float* x, void* out, int64_t count, const float* scale,
                   const void* zero_or_null, bool each) {
  const Q* zero = static_cast<const Q*>(zero_or_null);
  Q* q = static_cast<Q*>(out);
  if (each) {
    for (int64_t i = 0; i < count; ++i) {
      q[i] = quantize_one<Q>(x[i], scale[i], zero == nullptr ? 0 : static_cast<float>(zero[i]));
    }
    return;
  }
  const float one_scale = *scale;
  const float one_zero = zero == nullptr ? 0 : static_cast<float>(*zero);
  for (int64_t i = 0; i < count; ++i) q[i] = quantize_one<Q>(x[i], one_scale, one_zero);
}

template <typename Q>
void dequantize_loop(const void* in, float* out, int64_t count, const float* scale,
                     const void* zero_or_null, bool each) {
  const Q* zero = static_cast<const Q*>(zero_or_null);
  const Q* q = static_cast<const Q*>(in);
  if (each) {
    for (int64_t i = 0; i < count; ++i) {
      const float shifted = static_cast<float>(q[i] - (zero == nullptr ? 0 : zero[i]));
      out[i] = shifted * scale[i];
    }
    return;
  }
  const float one_scale = *scale;
  const int32_t one_zero = zero == nullptr ? 0 : *zero;
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(q[i] - one_zero) * one_scale;
  }
}

constexpr void put_quantize_loops(LoopSet& set) {
  set.int8 = {quantize_loop<int8_t>, dequantize_loop<int8_t>};
  set.uint8 = {quantize_loop<uint8_t>, dequantize_loop<uint8_t>};
}

}  // namespace
}  // namespace eddy::cpu
