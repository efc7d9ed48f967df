#include "graph/io/decode_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "graph/base/check.h"
#include "graph/io/onnx_types.h"

namespace eddy {
namespace {

static_assert(std::endian::native == std::endian::little, "raw tensor data is little-endian");

size_t packed_bytes(ElementType element, size_t count) {
  const size_t in_a_byte = 8 / element_bits(element);
  return count / in_a_byte + (count % in_a_byte != 0);
}

// Elements, lowest bits first, one a byte; signed integers with their sign.
void unpack(uint8_t packed, int64_t index, ElementType element, std::byte* to) {
  EDDY_DCHECK(index >= 0 && kPackedTypes.contains(element)) << "element " << index << " has a byte";
  const int bits = static_cast<int>(element_bits(element));
  const int value = packed >> (index % (8 / bits) * bits) & ((1 << bits) - 1);
  const bool is_signed = element == ElementType::kInt4 || element == ElementType::kInt2;
  const bool is_negative = is_signed && value >> (bits - 1) != 0;
  to[index] = static_cast<std::byte>(is_negative ? value - (1 << bits) : value);
}

// The byte of a file that holds an element.
size_t place_of(int64_t index, ElementType element) {
  return static_cast<size_t>(index) / (8 / element_bits(element));
}

Status wrong_count(std::string_view field, size_t found, size_t expected) {
  return invalid_argument(std::string(field) + " holds " + std::to_string(found) +
                          " numbers where the shape needs " + std::to_string(expected));
}

template <typename From, typename To>
Status narrow_all(std::string_view field, const std::vector<From>& from, size_t expected,
                  std::vector<std::byte>& to) {
  static_assert(sizeof(To) <= sizeof(From), "fields hold numbers at least as wide");
  if (from.size() != expected) return wrong_count(field, from.size(), expected);
  to.resize(expected * sizeof(To));
  for (size_t i = 0; i < expected; ++i) {
    const To value = static_cast<To>(from[i]);
    std::memcpy(to.data() + i * sizeof(To), &value, sizeof(To));
  }
  return Status::ok();
}

Status packed_from_int32(const OnnxTensor& tensor, const TensorLayout& layout,
                         std::vector<std::byte>& to) {
  const size_t expected = layout.file_bytes;
  EDDY_CHECK(expected == packed_bytes(layout.element, static_cast<size_t>(layout.count)))
      << expected << " bytes for " << layout.count << " elements";
  if (tensor.int32_data.size() != expected) {
    return wrong_count("int32_data", tensor.int32_data.size(), expected);
  }
  to.resize(static_cast<size_t>(layout.count));
  for (int64_t i = 0; i < layout.count; ++i) {
    const auto packed = static_cast<uint8_t>(tensor.int32_data[place_of(i, layout.element)]);
    unpack(packed, i, layout.element, to.data());
  }
  return Status::ok();
}

Status from_int32(const OnnxTensor& tensor, const TensorLayout& layout,
                  std::vector<std::byte>& to) {
  if (kPackedTypes.contains(layout.element)) return packed_from_int32(tensor, layout, to);
  const size_t count = static_cast<size_t>(layout.count);
  EDDY_CHECK(element_size_bytes(layout.element) <= sizeof(int32_t) &&
             layout.element != ElementType::kUndefined)
      << element_type_name(layout.element) << " has another field";
  switch (element_size_bytes(layout.element)) {
    case 1:
      return narrow_all<int32_t, uint8_t>("int32_data", tensor.int32_data, count, to);
    case 2:
      return narrow_all<int32_t, uint16_t>("int32_data", tensor.int32_data, count, to);
    default:
      return narrow_all<int32_t, int32_t>("int32_data", tensor.int32_data, count, to);
  }
}

Status from_typed_field(const OnnxTensor& tensor, const TensorLayout& layout,
                        std::vector<std::byte>& to) {
  const size_t count = static_cast<size_t>(layout.count);
  switch (layout.element) {
    case ElementType::kFloat:
      return narrow_all<float, float>("float_data", tensor.float_data, count, to);
    case ElementType::kComplex64:
      return narrow_all<float, float>("float_data", tensor.float_data, 2 * count, to);
    case ElementType::kDouble:
      return narrow_all<double, double>("double_data", tensor.double_data, count, to);
    case ElementType::kComplex128:
      return narrow_all<double, double>("double_data", tensor.double_data, 2 * count, to);
    case ElementType::kInt64:
      return narrow_all<int64_t, int64_t>("int64_data", tensor.int64_data, count, to);
    case ElementType::kUint64:
      return narrow_all<uint64_t, uint64_t>("uint64_data", tensor.uint64_data, count, to);
    case ElementType::kUint32:
      return narrow_all<uint64_t, uint32_t>("uint64_data", tensor.uint64_data, count, to);
    default:
      return from_int32(tensor, layout, to);
  }
}

// A C++ bool other than 0 and 1 is undefined behaviour, so none may leave here.
bool has_odd_bool(std::span<const std::byte> bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
}

void normalize_bools(std::vector<std::byte>& bytes) {
  for (std::byte& b : bytes) b = b == std::byte{0} ? b : std::byte{1};
}

}  // namespace

Result<TensorLayout> layout_of(const OnnxTensor& tensor, const ImportLimits& limits) {
  if (tensor.is_segment) return unsupported("tensors in segments are not supported");
  if (tensor.dims.size() > kMaxRank) {
    return unsupported("a tensor of rank " + std::to_string(tensor.dims.size()) +
                       " is not supported, at most " + std::to_string(kMaxRank));
  }
  TensorLayout layout;
  EDDY_ASSIGN_OR_RETURN(layout.element, to_element_type(tensor.data_type));
  for (int64_t dim : tensor.dims) {
    if (dim < 0) return invalid_argument("a dimension has size " + std::to_string(dim));
    layout.dims.push_back(dim);
  }
  const std::optional<int64_t> count = layout.dims.count();
  if (!count && std::find(layout.dims.begin(), layout.dims.end(), 0) != layout.dims.end()) {
    return resource_exhausted("a tensor of shape " + to_string(layout.dims) +
                              " is empty, but its other dimensions are too large");
  }
  if (!count || *count > limits.max_elements) {
    return resource_exhausted("a tensor of shape " + to_string(layout.dims) + " has more than " +
                              std::to_string(limits.max_elements) + " elements");
  }
  layout.count = *count;
  const size_t elements = static_cast<size_t>(layout.count);
  if (kPackedTypes.contains(layout.element)) {
    layout.file_bytes = packed_bytes(layout.element, elements);
  } else if (layout.element != ElementType::kString) {
    layout.file_bytes = elements * element_size_bytes(layout.element);
  }
  return layout;
}

Result<DecodedTensor> decode_raw(const TensorLayout& layout, std::span<const std::byte> raw) {
  if (layout.element == ElementType::kString) {
    return invalid_argument("strings can't be raw or external data");
  }
  if (raw.size() != layout.file_bytes) {
    return invalid_argument("the data has " + std::to_string(raw.size()) + " bytes, but " +
                            to_string(ValueType(TensorType(layout.element, layout.dims))) +
                            " takes " + std::to_string(layout.file_bytes));
  }
  DecodedTensor result{layout.element, layout.dims, raw.data(), false, {}, {}};
  if (kPackedTypes.contains(layout.element)) {
    result.bytes.resize(static_cast<size_t>(layout.count));
    for (int64_t i = 0; i < layout.count; ++i) {
      unpack(std::to_integer<uint8_t>(raw[place_of(i, layout.element)]), i, layout.element,
             result.bytes.data());
    }
    result.data = result.bytes.data();
  } else if (layout.element == ElementType::kBool && has_odd_bool(raw)) {
    result.bytes.assign(raw.begin(), raw.end());
    normalize_bools(result.bytes);
    result.data = result.bytes.data();
  } else {
    const auto address = reinterpret_cast<uintptr_t>(raw.data());
    // Complex numbers align as their parts; no element needs more than 8 bytes.
    const size_t alignment = std::min<size_t>(element_size_bytes(layout.element), 8);
    EDDY_CHECK(alignment > 0) << "raw data of no element type";
    result.is_borrowable = !raw.empty() && address % alignment == 0;
  }
  return result;
}

Result<DecodedTensor> decode_tensor(const OnnxTensor& tensor, const ImportLimits& limits) {
  EDDY_ASSIGN_OR_RETURN(const TensorLayout layout, layout_of(tensor, limits));
  if (tensor.has_raw_data) return decode_raw(layout, tensor.raw_data);
  DecodedTensor result{layout.element, layout.dims, nullptr, false, {}, {}};
  if (layout.element == ElementType::kString) {
    if (tensor.string_data.size() != static_cast<size_t>(layout.count)) {
      return wrong_count("string_data", tensor.string_data.size(),
                         static_cast<size_t>(layout.count));
    }
    result.strings.assign(tensor.string_data.begin(), tensor.string_data.end());
    result.data = result.strings.data();
    return result;
  }
  EDDY_RETURN_IF_ERROR(from_typed_field(tensor, layout, result.bytes));
  if (layout.element == ElementType::kBool) normalize_bools(result.bytes);
  result.data = result.bytes.data();
  EDDY_CHECK(result.bytes.size() == result.view().size_bytes())
      << result.bytes.size() << " bytes were decoded for " << result.view().size_bytes();
  return result;
}

}  // namespace eddy
