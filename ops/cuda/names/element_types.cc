#include "ops/cuda/names/element_types.h"

#include <algorithm>

namespace eddy::cuda {
namespace {

constexpr ElementType kSuffixed[] = {
    ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBfloat16,
    ElementType::kInt8,  ElementType::kUint8,  ElementType::kInt16,   ElementType::kUint16,
    ElementType::kInt32, ElementType::kUint32, ElementType::kInt64,   ElementType::kUint64,
    ElementType::kBool,
};

}  // namespace

std::string_view type_suffix(ElementType element) {
  switch (element) {
    case ElementType::kFloat:
      return "f32";
    case ElementType::kDouble:
      return "f64";
    case ElementType::kFloat16:
      return "f16";
    case ElementType::kBfloat16:
      return "bf16";
    case ElementType::kInt32:
      return "i32";
    case ElementType::kInt64:
      return "i64";
    case ElementType::kBool:
      return "b8";
    case ElementType::kInt8:
      return "i8";
    case ElementType::kUint8:
      return "u8";
    case ElementType::kInt16:
      return "i16";
    case ElementType::kUint16:
      return "u16";
    case ElementType::kUint32:
      return "u32";
    case ElementType::kUint64:
      return "u64";
    default:
      return "";
  }
}

ElementType element_type_of(std::string_view suffix) {
  const auto* const found =
      std::find_if(std::begin(kSuffixed), std::end(kSuffixed),
                   [&](ElementType type) { return type_suffix(type) == suffix; });
  return found == std::end(kSuffixed) ? ElementType::kUndefined : *found;
}

}  // namespace eddy::cuda
