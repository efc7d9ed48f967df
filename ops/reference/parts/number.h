// Number: one element of any numeric type, and the conversions between all of them.
//
// The reference meaning of Cast. A number is kept exactly: integers as int64 or uint64, floats
// as double; it is rounded once, when stored.
//
//   to an integer  from a float: towards zero, clamped to the range, NaN becomes 0;
//                  from an integer: the low bits (two's complement)
//   to 4 or 2 bits from a float: to nearest even, then the low bits, NaN becomes 0;
//                  from an integer: the low bits
//   to a float     nearest even; to one of 8 or 4 bits as small_float.h says
//   to bool        not equal to zero (NaN is true)
#pragma once

#include <cstdint>

#include "graph/ir/element_type.h"
#include "graph/ir/tensor_view.h"

namespace eddy {

// What arithmetic knows, and what can be read and written at all.
inline constexpr TypeSet kNumberTypes = kNumericTypes | kBoolType;
inline constexpr TypeSet kCastTypes = kNumberTypes | kSmallTypes;

// A float clamped to T's range; NaN becomes 0.
template <typename T>
T saturate(double value) {
  constexpr T kLowest = static_cast<T>(T(0) < T(-1) ? 0 : T(1) << (sizeof(T) * 8 - 1));
  constexpr T kHighest = static_cast<T>(~kLowest);
  if (!(value == value)) return 0;
  if (value <= static_cast<double>(kLowest)) return kLowest;
  // For 64-bit types the highest value rounds up to the first double out of range.
  if (value >= static_cast<double>(kHighest)) return kHighest;
  return static_cast<T>(value);
}

struct Number {
  enum class Kind : uint8_t { kSigned, kUnsigned, kFloat };
  Kind kind = Kind::kSigned;
  union {
    int64_t signed_value = 0;
    uint64_t unsigned_value;
    double float_value;
  };

  static Number of_int(int64_t value);
  static Number of_uint(uint64_t value);
  static Number of_double(double value);

  double to_double() const;
  // One that gives the same, rounded to a type of 16 bits, as the number itself.
  double to_double_odd() const;
  float to_float() const;
  // An integer type's value: see above.
  template <typename T>
  T to_integer() const {
    if (kind == Kind::kFloat) return saturate<T>(float_value);
    return kind == Kind::kSigned ? static_cast<T>(signed_value) : static_cast<T>(unsigned_value);
  }
  // As int64, but clamped there; a NaN is the lowest, which is no place in any tensor.
  int64_t to_index() const {
    if (kind == Kind::kFloat) {
      return float_value == float_value ? saturate<int64_t>(float_value) : INT64_MIN;
    }
    return kind == Kind::kUnsigned && unsigned_value > INT64_MAX ? INT64_MAX : signed_value;
  }
};

// Element i of a tensor whose type is in kCastTypes; a programmer error for others.
Number load_number(const TensorView& view, int64_t i);
void store_number(const TensorView& view, int64_t i, const Number& number);

}  // namespace eddy
