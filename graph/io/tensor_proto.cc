#include "graph/io/tensor_proto.h"

#include "graph/base/check.h"

namespace eddy {
namespace {

// Elements of less than a byte, lowest bits first.
std::string pack(const TensorView& tensor) {
  const int bits = static_cast<int>(element_bits(tensor.element));
  EDDY_CHECK(bits > 0 && bits < 8) << element_type_name(tensor.element) << " fills its bytes";
  const int64_t in_a_byte = 8 / bits;
  const int64_t count = tensor.count();
  std::string packed(static_cast<size_t>(count / in_a_byte + (count % in_a_byte != 0)), '\0');
  for (int64_t i = 0; i < count; ++i) {
    const int value = tensor.as<uint8_t>()[i] & ((1 << bits) - 1);
    char& byte = packed[static_cast<size_t>(i / in_a_byte)];
    byte = static_cast<char>(byte | value << (i % in_a_byte * bits));
  }
  return packed;
}

WireWriter tensor_type_proto(const TensorType& type, const SymbolNameFunction& symbol_name) {
  WireWriter tensor;
  tensor.integer(1, static_cast<int64_t>(type.element));
  if (!type.is_ranked) return tensor;
  WireWriter shape;
  for (int64_t size : type.dims.span()) {
    WireWriter dim;
    if (size >= 0) dim.integer(1, size);
    if (size < kUnknownDim) dim.bytes(2, symbol_name(size));
    shape.message(1, dim);
  }
  tensor.message(2, shape);
  return tensor;
}

// All but the elements.
WireWriter tensor_head(const TensorView& tensor, std::string_view name) {
  WireWriter proto;
  for (int64_t dim : tensor.shape()) proto.integer(1, dim);
  proto.integer(2, static_cast<int64_t>(tensor.element));
  if (!name.empty()) proto.bytes(8, name);
  return proto;
}

}  // namespace

WireWriter placed_tensor_proto(const TensorView& tensor, std::string_view name, uint64_t offset) {
  EDDY_CHECK(tensor.element != ElementType::kString && !kPackedTypes.contains(tensor.element))
      << name << " has no plain bytes";
  WireWriter proto = tensor_head(tensor, name);
  WireWriter entry;
  entry.bytes(1, "offset");
  entry.bytes(2, std::to_string(offset));
  proto.message(13, entry);
  constexpr int64_t kExternal = 1;
  proto.integer(14, kExternal);
  return proto;
}

WireWriter tensor_proto(const TensorView& tensor, std::string_view name) {
  EDDY_CHECK(tensor.data != nullptr || tensor.size_bytes() == 0) << name << " has no bytes";
  WireWriter proto = tensor_head(tensor, name);
  if (tensor.element == ElementType::kString) {
    for (int64_t i = 0; i < tensor.count(); ++i) proto.bytes(6, tensor.as<std::string>()[i]);
  } else if (kPackedTypes.contains(tensor.element)) {
    proto.bytes(9, pack(tensor));
  } else {
    proto.bytes(9, {static_cast<const char*>(tensor.data), tensor.size_bytes()});
  }
  return proto;
}

WireWriter type_proto(const ValueType& type, const SymbolNameFunction& symbol_name) {
  WireWriter proto;
  if (type.is_tensor()) {
    proto.message(1, tensor_type_proto(type.tensor, symbol_name));
    return proto;
  }
  WireWriter layer;
  layer.message(1, type_proto(type.unwrapped(), symbol_name));
  proto.message(type.is_sequence() ? 4 : 9, layer);
  return proto;
}

}  // namespace eddy
