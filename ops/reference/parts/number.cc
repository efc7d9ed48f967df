#include "ops/reference/parts/number.h"

#include <cmath>

#include "graph/base/check.h"
#include "graph/ir/half.h"
#include "ops/reference/parts/small_float.h"

namespace eddy {

Number Number::of_int(int64_t value) {
  Number number;
  number.signed_value = value;
  return number;
}

Number Number::of_uint(uint64_t value) {
  Number number;
  number.kind = Kind::kUnsigned;
  number.unsigned_value = value;
  return number;
}

Number Number::of_double(double value) {
  Number number;
  number.kind = Kind::kFloat;
  number.float_value = value;
  return number;
}

double Number::to_double() const {
  if (kind == Kind::kFloat) return float_value;
  return kind == Kind::kSigned ? static_cast<double>(signed_value)
                               : static_cast<double>(unsigned_value);
}

double Number::to_double_odd() const {
  if (kind == Kind::kFloat) return float_value;
  if (kind == Kind::kUnsigned) return whole_to_double_odd(unsigned_value);
  if (signed_value >= 0) return whole_to_double_odd(static_cast<uint64_t>(signed_value));
  return -whole_to_double_odd(0 - static_cast<uint64_t>(signed_value));
}

float Number::to_float() const {
  if (kind == Kind::kFloat) return static_cast<float>(float_value);
  return kind == Kind::kSigned ? static_cast<float>(signed_value)
                               : static_cast<float>(unsigned_value);
}

namespace {

Number load_small(const TensorView& view, int64_t i) {
  const uint8_t byte = view.as<uint8_t>()[i];
  switch (view.element) {
    case ElementType::kInt4:
    case ElementType::kInt2:
      return Number::of_int(static_cast<int8_t>(byte));
    case ElementType::kUint4:
    case ElementType::kUint2:
      return Number::of_uint(byte);
    default:
      return Number::of_double(small_float_values(view.element)[byte]);
  }
}

void store_small(const TensorView& view, int64_t i, const Number& number) {
  uint8_t& byte = view.mutable_as<uint8_t>()[i];
  if (kSmallFloatTypes.contains(view.element)) {
    byte = to_small_float(view.element, double_to_float_odd(number.to_double_odd()));
    return;
  }
  const Number whole = number.kind == Number::Kind::kFloat
                           ? Number::of_double(std::nearbyint(number.float_value))
                           : number;
  const int bits = static_cast<int>(element_bits(view.element));
  const int low = static_cast<int>(whole.to_integer<int64_t>() & ((1 << bits) - 1));
  const bool is_signed = view.element == ElementType::kInt4 || view.element == ElementType::kInt2;
  const bool is_negative = is_signed && low >> (bits - 1) != 0;
  byte = static_cast<uint8_t>(is_negative ? low - (1 << bits) : low);
}

}  // namespace

Number load_number(const TensorView& view, int64_t i) {
  EDDY_DCHECK(i >= 0 && view.data != nullptr) << "number " << i << " of nothing";
  switch (view.element) {
    case ElementType::kBool:
    case ElementType::kUint8:
      return Number::of_uint(view.as<uint8_t>()[i]);
    case ElementType::kUint16:
      return Number::of_uint(view.as<uint16_t>()[i]);
    case ElementType::kUint32:
      return Number::of_uint(view.as<uint32_t>()[i]);
    case ElementType::kUint64:
      return Number::of_uint(view.as<uint64_t>()[i]);
    case ElementType::kInt8:
      return Number::of_int(view.as<int8_t>()[i]);
    case ElementType::kInt16:
      return Number::of_int(view.as<int16_t>()[i]);
    case ElementType::kInt32:
      return Number::of_int(view.as<int32_t>()[i]);
    case ElementType::kInt64:
      return Number::of_int(view.as<int64_t>()[i]);
    case ElementType::kFloat:
      return Number::of_double(view.as<float>()[i]);
    case ElementType::kDouble:
      return Number::of_double(view.as<double>()[i]);
    case ElementType::kFloat16:
      return Number::of_double(float16_to_float(view.as<uint16_t>()[i]));
    case ElementType::kBfloat16:
      return Number::of_double(bfloat16_to_float(view.as<uint16_t>()[i]));
    default:
      break;
  }
  EDDY_CHECK(kSmallTypes.contains(view.element))
      << "no number: " << element_type_name(view.element);
  return load_small(view, i);
}

void store_number(const TensorView& view, int64_t i, const Number& number) {
  EDDY_DCHECK(i >= 0 && view.data != nullptr) << "number " << i << " of nothing";
  switch (view.element) {
    case ElementType::kBool:
      view.mutable_as<bool>()[i] = number.to_double() != 0;
      return;
    case ElementType::kUint8:
      view.mutable_as<uint8_t>()[i] = number.to_integer<uint8_t>();
      return;
    case ElementType::kUint16:
      view.mutable_as<uint16_t>()[i] = number.to_integer<uint16_t>();
      return;
    case ElementType::kUint32:
      view.mutable_as<uint32_t>()[i] = number.to_integer<uint32_t>();
      return;
    case ElementType::kUint64:
      view.mutable_as<uint64_t>()[i] = number.to_integer<uint64_t>();
      return;
    case ElementType::kInt8:
      view.mutable_as<int8_t>()[i] = number.to_integer<int8_t>();
      return;
    case ElementType::kInt16:
      view.mutable_as<int16_t>()[i] = number.to_integer<int16_t>();
      return;
    case ElementType::kInt32:
      view.mutable_as<int32_t>()[i] = number.to_integer<int32_t>();
      return;
    case ElementType::kInt64:
      view.mutable_as<int64_t>()[i] = number.to_integer<int64_t>();
      return;
    case ElementType::kFloat:
      view.mutable_as<float>()[i] = number.to_float();
      return;
    case ElementType::kDouble:
      view.mutable_as<double>()[i] = number.to_double();
      return;
    case ElementType::kFloat16:
      view.mutable_as<uint16_t>()[i] = double_to_float16(number.to_double_odd());
      return;
    case ElementType::kBfloat16:
      view.mutable_as<uint16_t>()[i] = double_to_bfloat16(number.to_double_odd());
      return;
    default:
      break;
  }
  EDDY_CHECK(kSmallTypes.contains(view.element))
      << "no number: " << element_type_name(view.element);
  store_small(view, i, number);
}

}  // namespace eddy
