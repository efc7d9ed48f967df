// ElementType: what one element of a tensor is. All of ONNX's types exist here; kernels may
// support fewer and refuse the others by name.
//
// The numeric values are ONNX's TensorProto.DataType, so files need no translation table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace eddy {

enum class ElementType : uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,  // elements are std::string objects in memory
  kBool = 9,    // one byte, 0 or 1
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,       // unpacked: one element a byte
  kInt4 = 22,        // unpacked: one element a byte
  kFloat4E2M1 = 23,  // unpacked: one element a byte
  kFloat8E8M0 = 24,  // powers of two: 2^(byte - 127)
  kUint2 = 25,       // unpacked: one element a byte
  kInt2 = 26,        // unpacked: one element a byte
};
inline constexpr int kNumElementTypes = 27;

// ONNX's lower-case name ("float", "int64"); "undefined" for kUndefined.
std::string_view element_type_name(ElementType type);

// Bytes of one element in memory; 0 for kUndefined. sizeof(std::string) for kString.
size_t element_size_bytes(ElementType type);

// Bits of one element as the standard counts them and as files pack them: 2 and 4 for the types
// that memory holds unpacked, else all bits of its bytes.
size_t element_bits(ElementType type);

// A set of element types, one bit each.
class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<ElementType> types) {
    for (ElementType type : types) bits_ |= bit(type);
  }
  constexpr bool contains(ElementType type) const { return (bits_ & bit(type)) != 0; }
  constexpr TypeSet operator|(TypeSet other) const {
    TypeSet result;
    result.bits_ = bits_ | other.bits_;
    return result;
  }

 private:
  static constexpr uint32_t bit(ElementType type) { return 1u << static_cast<int>(type); }
  uint32_t bits_ = 0;
};

static_assert(kNumElementTypes <= 32, "a TypeSet has a bit for each");

inline constexpr TypeSet kFloatTypes = {ElementType::kFloat16, ElementType::kFloat,
                                        ElementType::kDouble, ElementType::kBfloat16};
inline constexpr TypeSet kSignedIntTypes = {ElementType::kInt8, ElementType::kInt16,
                                            ElementType::kInt32, ElementType::kInt64};
inline constexpr TypeSet kUnsignedIntTypes = {ElementType::kUint8, ElementType::kUint16,
                                              ElementType::kUint32, ElementType::kUint64};
inline constexpr TypeSet kIntTypes = kSignedIntTypes | kUnsignedIntTypes;
inline constexpr TypeSet kNumericTypes = kFloatTypes | kIntTypes;
inline constexpr TypeSet kBoolType = {ElementType::kBool};
// Storage only: read and written by Cast, Quantize and Dequantize.
inline constexpr TypeSet kFloat8Types = {
    ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ, ElementType::kFloat8E5M2,
    ElementType::kFloat8E5M2FNUZ, ElementType::kFloat8E8M0};
inline constexpr TypeSet kSmallIntTypes = {ElementType::kUint4, ElementType::kInt4,
                                           ElementType::kUint2, ElementType::kInt2};
// Several share a byte of a file.
inline constexpr TypeSet kPackedTypes = kSmallIntTypes | TypeSet{ElementType::kFloat4E2M1};
inline constexpr TypeSet kSmallTypes = kFloat8Types | kPackedTypes;
inline constexpr TypeSet kAllTypes =
    kNumericTypes | kBoolType | kSmallTypes |
    TypeSet{ElementType::kString, ElementType::kComplex64, ElementType::kComplex128};

// The ElementType of a C++ type: element_type_of<float>() == ElementType::kFloat.
template <typename T>
constexpr ElementType element_type_of();
template <>
constexpr ElementType element_type_of<float>() {
  return ElementType::kFloat;
}
template <>
constexpr ElementType element_type_of<double>() {
  return ElementType::kDouble;
}
template <>
constexpr ElementType element_type_of<bool>() {
  return ElementType::kBool;
}
template <>
constexpr ElementType element_type_of<int8_t>() {
  return ElementType::kInt8;
}
template <>
constexpr ElementType element_type_of<int16_t>() {
  return ElementType::kInt16;
}
template <>
constexpr ElementType element_type_of<int32_t>() {
  return ElementType::kInt32;
}
template <>
constexpr ElementType element_type_of<int64_t>() {
  return ElementType::kInt64;
}
template <>
constexpr ElementType element_type_of<uint8_t>() {
  return ElementType::kUint8;
}
template <>
constexpr ElementType element_type_of<uint16_t>() {
  return ElementType::kUint16;
}
template <>
constexpr ElementType element_type_of<uint32_t>() {
  return ElementType::kUint32;
}
template <>
constexpr ElementType element_type_of<uint64_t>() {
  return ElementType::kUint64;
}

}  // namespace eddy
