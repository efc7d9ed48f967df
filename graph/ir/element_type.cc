#include "graph/ir/element_type.h"

#include <array>
#include <string>

namespace eddy {
namespace {

struct ElementInfo {
  std::string_view name;
  size_t size_bytes;
  size_t packed_bits = 8 * size_bytes;
};

constexpr std::array<ElementInfo, kNumElementTypes> kElements = {{
    {"undefined", 0},      {"float", 4},      {"uint8", 1},
    {"int8", 1},           {"uint16", 2},     {"int16", 2},
    {"int32", 4},          {"int64", 8},      {"string", sizeof(std::string)},
    {"bool", 1},           {"float16", 2},    {"double", 8},
    {"uint32", 4},         {"uint64", 8},     {"complex64", 8},
    {"complex128", 16},    {"bfloat16", 2},   {"float8e4m3fn", 1},
    {"float8e4m3fnuz", 1}, {"float8e5m2", 1}, {"float8e5m2fnuz", 1},
    {"uint4", 1, 4},       {"int4", 1, 4},    {"float4e2m1", 1, 4},
    {"float8e8m0", 1},     {"uint2", 1, 2},   {"int2", 1, 2},
}};

constexpr bool all_have_names() {
  for (const ElementInfo& info : kElements) {
    if (info.name.empty() || (info.size_bytes == 0) != (info.name == "undefined")) return false;
  }
  return true;
}
static_assert(all_have_names(), "each type has a row");
static_assert(kElements[static_cast<size_t>(ElementType::kInt2)].name == "int2" &&
                  kElements[static_cast<size_t>(ElementType::kString)].name == "string",
              "the rows stand in the order of ElementType");

}  // namespace

std::string_view element_type_name(ElementType type) {
  return kElements[static_cast<size_t>(type)].name;
}

size_t element_size_bytes(ElementType type) {
  return kElements[static_cast<size_t>(type)].size_bytes;
}

size_t element_bits(ElementType type) { return kElements[static_cast<size_t>(type)].packed_bits; }

}  // namespace eddy
