#include "ops/reference/parts/small_float.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "graph/base/check.h"
#include "graph/ir/half.h"

namespace eddy {
namespace {

constexpr int kFloatFraction = 23;
constexpr int kFloatBias = 127;
constexpr uint32_t kFloatInfinity = 0x7f800000u;

// Of the types with a sign.
struct Format {
  int fraction;  // bits
  int bias;
  uint8_t sign;      // its bit
  uint8_t largest;   // the largest number's magnitude
  uint8_t overflow;  // what is beyond: infinity or NaN
  uint8_t nan;
  bool has_negative_zero;  // else its bits are NaN, which has no sign
};

constexpr Format kE4M3FN = {3, 7, 0x80, 0x7e, 0x7f, 0x7f, true};
constexpr Format kE4M3FNUZ = {3, 8, 0x80, 0x7f, 0x80, 0x80, false};
constexpr Format kE5M2 = {2, 15, 0x80, 0x7b, 0x7c, 0x7f, true};
constexpr Format kE5M2FNUZ = {2, 16, 0x80, 0x7f, 0x80, 0x80, false};
constexpr Format kE2M1 = {1, 1, 0x08, 0x07, 0x07, 0x07, true};

const Format& format_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat8E4M3FN:
      return kE4M3FN;
    case ElementType::kFloat8E4M3FNUZ:
      return kE4M3FNUZ;
    case ElementType::kFloat8E5M2:
      return kE5M2;
    case ElementType::kFloat8E5M2FNUZ:
      return kE5M2FNUZ;
    case ElementType::kFloat4E2M1:
      return kE2M1;
    default:
      break;
  }
  EDDY_CHECK(false) << element_type_name(type) << " is no small float with a sign";
  return kE2M1;
}

float value_of(const Format& format, uint8_t bits) {
  const bool is_negative = (bits & format.sign) != 0;
  const int magnitude = bits & (format.sign - 1);
  if (!format.has_negative_zero && is_negative && magnitude == 0) return std::nanf("");
  const float sign = is_negative ? -1.0f : 1.0f;
  if (magnitude > format.largest) {
    const bool is_infinite = format.overflow != format.nan && magnitude == format.overflow;
    return is_infinite ? sign * std::numeric_limits<float>::infinity() : std::nanf("");
  }
  const int exponent = magnitude >> format.fraction;
  const int fraction = magnitude & ((1 << format.fraction) - 1);
  const int significand = exponent == 0 ? fraction : fraction + (1 << format.fraction);
  return sign * std::ldexp(static_cast<float>(significand),
                           std::max(exponent, 1) - format.bias - format.fraction);
}

std::array<float, 256> values_of(const Format& format) {
  std::array<float, 256> values;
  for (int i = 0; i < 256; ++i) values[i] = value_of(format, static_cast<uint8_t>(i));
  return values;
}

std::array<float, 256> powers_of_two() {
  std::array<float, 256> values;
  for (int i = 0; i < 255; ++i) values[i] = std::ldexp(1.0f, i - kFloatBias);
  values[255] = std::nanf("");
  return values;
}

// The magnitude of a finite float, rounded to nearest even; may be beyond the largest.
uint32_t round_magnitude(const Format& format, uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> kFloatFraction) - kFloatBias;
  const int cut = kFloatFraction - format.fraction;
  if (exponent >= 1 - format.bias) {
    // A carry moves into the exponent.
    const auto moved = static_cast<uint32_t>(kFloatBias - format.bias) << kFloatFraction;
    return shift_right_round(magnitude - moved, cut);
  }
  // Below the smallest normal number. A float's own subnormals are far below all of these.
  const int shift = cut + (1 - format.bias - exponent);
  if (shift > kFloatFraction + 1) return 0;
  return shift_right_round((magnitude & 0x7fffffu) | 0x800000u, shift);
}

uint8_t to_signed(const Format& format, float value, bool saturates) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const auto sign = static_cast<uint8_t>(bits >> 31 != 0 ? format.sign : 0);
  const bool is_nan = magnitude > kFloatInfinity;
  if (is_nan && &format == &kE2M1) return format.nan;
  if (is_nan) return static_cast<uint8_t>(format.nan | sign);
  const uint32_t rounded =
      magnitude == kFloatInfinity ? UINT32_MAX : round_magnitude(format, magnitude);
  if (rounded > format.largest) {
    return static_cast<uint8_t>((saturates ? format.largest : format.overflow) | sign);
  }
  if (rounded == 0 && !format.has_negative_zero) return 0;
  return static_cast<uint8_t>(rounded | sign);
}

uint8_t to_power_of_two(float value, SmallFloatRounding rounding) {
  using Direction = SmallFloatRounding::Direction;
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  if (magnitude >= kFloatInfinity) return 0xff;
  constexpr uint32_t kHalf = 1u << (kFloatFraction - 1);
  const uint32_t exponent = magnitude >> kFloatFraction;
  const uint32_t fraction = magnitude & 0x7fffffu;
  // A float's subnormals begin again at half of the smallest normal one: at 2^-127.
  const uint32_t rest = exponent > 0 ? fraction : fraction > kHalf ? 2 * (fraction - kHalf) : 0;
  bool is_up = rounding.direction == Direction::kUp && rest != 0;
  if (rounding.direction == Direction::kNearest) is_up = rest >= kHalf;
  if (rounding.saturates && exponent == 0xfe) is_up = false;
  return static_cast<uint8_t>(exponent + (is_up ? 1 : 0));
}

}  // namespace

std::span<const float, 256> small_float_values(ElementType type) {
  static const std::array<float, 256> e4m3fn = values_of(kE4M3FN);
  static const std::array<float, 256> e4m3fnuz = values_of(kE4M3FNUZ);
  static const std::array<float, 256> e5m2 = values_of(kE5M2);
  static const std::array<float, 256> e5m2fnuz = values_of(kE5M2FNUZ);
  static const std::array<float, 256> e2m1 = values_of(kE2M1);
  static const std::array<float, 256> e8m0 = powers_of_two();
  switch (type) {
    case ElementType::kFloat8E4M3FN:
      return e4m3fn;
    case ElementType::kFloat8E4M3FNUZ:
      return e4m3fnuz;
    case ElementType::kFloat8E5M2:
      return e5m2;
    case ElementType::kFloat8E5M2FNUZ:
      return e5m2fnuz;
    case ElementType::kFloat4E2M1:
      return e2m1;
    case ElementType::kFloat8E8M0:
      return e8m0;
    default:
      break;
  }
  EDDY_CHECK(false) << element_type_name(type) << " is no small float";
  return e8m0;
}

uint8_t to_small_float(ElementType type, float value, SmallFloatRounding rounding) {
  if (type == ElementType::kFloat8E8M0) return to_power_of_two(value, rounding);
  return to_signed(format_of(type), value, rounding.saturates);
}

}  // namespace eddy
