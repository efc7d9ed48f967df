// Floating-point numbers of 8 and 4 bits: what Cast, QuantizeLinear and DequantizeLinear read and
// write. One element stands in a byte; arithmetic happens in float, which holds each exactly.
//
//   float8e4m3fn    1 sign, 4 exponent, 3 fraction bits, bias 7; no infinity, NaN is S.1111.111
//   float8e5m2      bias 15; infinities and NaN as IEEE 754 has them
//   ...fnuz         bias one higher; no infinity and no negative zero, whose bits are the one NaN
//   float4e2m1      bias 1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives, nothing else
//   float8e8m0      2^(byte - 127), no sign and no zero; 255 is NaN
//
// Writing rounds once, to nearest even. What is beyond the largest number becomes it where
// `saturates` (infinities, too), else infinity or NaN, whichever the type has; float4e2m1 always
// saturates, and has 6 for NaN. float8e8m0 takes the magnitude, rounds by `direction`, and makes
// NaN of infinities; zero becomes 2^-127.
//
// Sources: the texts of Cast (ONNX, opset 25); Micikevicius et al., "FP8 Formats for Deep Learning"
// (2022), section 3; OCP Microscaling Formats 1.0, section 5. The standard's table makes NaN of
// infinities in fnuz types that saturate; its tests and other runtimes make the largest number of
// them, as is done here. Threads: pure. Cost: reading is a look-up.
#pragma once

#include <cstdint>
#include <span>

#include "graph/ir/element_type.h"

namespace eddy {

inline constexpr TypeSet kSmallFloatTypes = kFloat8Types | TypeSet{ElementType::kFloat4E2M1};

struct SmallFloatRounding {
  enum class Direction : uint8_t { kUp, kDown, kNearest };

  bool saturates = true;
  Direction direction = Direction::kUp;  // float8e8m0's alone; up is away from zero
};

// What each byte means, by its bits; of float4e2m1 by the low four. For types of kSmallFloatTypes.
std::span<const float, 256> small_float_values(ElementType type);

uint8_t to_small_float(ElementType type, float value, SmallFloatRounding rounding = {});

}  // namespace eddy
