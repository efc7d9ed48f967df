// Float16 and Bfloat16: storage types. Arithmetic happens in float; converting back rounds to
// nearest even. Float16 is IEEE 754 binary16; Bfloat16 is the upper half of a float.
//
// Conversions are bit manipulations, so they give the same bits on every machine. NaN stays NaN
// (quiet), overflow becomes infinity, subnormals are kept.
#pragma once

#include <bit>
#include <cstdint>

#include "graph/ir/element_type.h"

namespace eddy {

inline float float16_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  }
  // A subnormal is its fraction times 2^-24, which a float holds exactly.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

// Shifts right by `count` (1..31), rounding to nearest even.
inline uint32_t shift_right_round(uint32_t value, int count) {
  const uint32_t half = 1u << (count - 1);
  const uint32_t rest = value & ((half << 1) - 1);
  uint32_t result = value >> count;
  if (rest > half || (rest == half && (result & 1) != 0)) ++result;
  return result;
}

inline uint16_t float_to_float16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  // 65520 and above round to infinity.
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {  // 2^-14: normal; a carry moves into the exponent
    return static_cast<uint16_t>(sign | shift_right_round(magnitude - 0x38000000u, 13));
  }
  const int exponent = static_cast<int>(magnitude >> 23);
  const int shift = 126 - exponent;  // of the full significand, to units of 2^-24
  if (shift > 25) return static_cast<uint16_t>(sign);
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  return static_cast<uint16_t>(sign | shift_right_round(significand, shift));
}

inline float bfloat16_to_float(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

inline uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>(shift_right_round(bits, 16));
}

// The float next to `value` towards zero, with its last bit set if anything was cut off: rounding
// that to fewer bits gives what rounding `value` at once would give.
inline float double_to_float_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool is_further = value < 0 ? back < value : back > value;
  if (is_further) --bits;
  return std::bit_cast<float>(bits | 1u);
}

// A whole number as a double, cut to an odd one where it has more than 53 bits: rounding that to
// fewer bits gives what rounding the number at once would give.
inline double whole_to_double_odd(uint64_t magnitude) {
  constexpr uint64_t kCut = 0x7ff;  // what a number of 64 bits has more
  if (magnitude >> 53 != 0) magnitude = (magnitude | ((magnitude & kCut) + kCut)) & ~kCut;
  return static_cast<double>(magnitude);
}

inline uint16_t double_to_float16(double value) {
  return float_to_float16(double_to_float_odd(value));
}
inline uint16_t double_to_bfloat16(double value) {
  return float_to_bfloat16(double_to_float_odd(value));
}

struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  Float16(float value) : bits(float_to_float16(value)) {}
  operator float() const { return float16_to_float(bits); }
};

struct Bfloat16 {
  uint16_t bits = 0;
  Bfloat16() = default;
  Bfloat16(float value) : bits(float_to_bfloat16(value)) {}
  operator float() const { return bfloat16_to_float(bits); }
};

template <>
constexpr ElementType element_type_of<Float16>() {
  return ElementType::kFloat16;
}
template <>
constexpr ElementType element_type_of<Bfloat16>() {
  return ElementType::kBfloat16;
}

}  // namespace eddy
