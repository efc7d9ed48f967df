// Tensors, types and the values of test data: the leaves of parse_model.h.
#include <cstring>

#include "graph/io/proto_parser.h"

namespace eddy {

template <typename T>
void ProtoParser::add_fixed(const WireReader& reader, const char* field, std::vector<T>& to) {
  constexpr WireType kSingle = sizeof(T) == 4 ? WireType::kFixed32 : WireType::kFixed64;
  T value;
  if (reader.type() == kSingle) {
    if (!charge(reader.offset(), 2 * sizeof(T))) return;
    const uint64_t bits = reader.number();
    std::memcpy(&value, &bits, sizeof(T));
    to.push_back(value);
    return;
  }
  if (!expect(reader, WireType::kBytes, field)) return;
  const std::span<const std::byte> bytes = reader.bytes();
  if (bytes.size() % sizeof(T) != 0) {
    return fail(reader.offset(), field,
                "packed numbers of " + std::to_string(sizeof(T)) + " bytes each take " +
                    std::to_string(bytes.size()) + " bytes");
  }
  if (!charge(reader.offset(), 2 * bytes.size())) return;
  const size_t old_size = to.size();
  to.resize(old_size + bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(to.data() + old_size, bytes.data(), bytes.size());
}
template void ProtoParser::add_fixed(const WireReader&, const char*, std::vector<float>&);
template void ProtoParser::add_fixed(const WireReader&, const char*, std::vector<double>&);

void ProtoParser::parse(WireReader reader, OnnxTensor& tensor) {
  tensor.offset = reader.offset();
  int32_t location = 0;
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        add_integers(reader, "dims", tensor.dims);
        break;
      case 2:
        get(reader, "data_type", &tensor.data_type);
        break;
      case 3:
        tensor.is_segment = true;
        break;
      case 4:
        add_fixed(reader, "float_data", tensor.float_data);
        break;
      case 5:
        add_integers(reader, "int32_data", tensor.int32_data);
        break;
      case 6:
        add_string(reader, "string_data", tensor.string_data);
        break;
      case 7:
        add_integers(reader, "int64_data", tensor.int64_data);
        break;
      case 8:
        get_name(reader, "name", &tensor.name);
        break;
      case 9:
        tensor.has_raw_data = true;
        get_bytes(reader, "raw_data", &tensor.raw_data);
        break;
      case 10:
        add_fixed(reader, "double_data", tensor.double_data);
        break;
      case 11:
        add_integers(reader, "uint64_data", tensor.uint64_data);
        break;
      case 13:
        add_message(reader, "external_data", tensor.external_data);
        break;
      case 14:
        get(reader, "data_location", &location);
        break;
      default:
        break;
    }
  }
  if (location < 0 || location > 1) {
    return fail(tensor.offset, "data_location", std::to_string(location) + " is not a location");
  }
  tensor.is_external = location == 1;
}

void ProtoParser::parse(WireReader reader, OnnxSparseTensor& sparse) {
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        get_message(reader, "values", sparse.values);
        break;
      case 2:
        sparse.has_indices = true;
        get_message(reader, "indices", sparse.indices);
        break;
      case 3:
        add_integers(reader, "dims", sparse.dims);
        break;
      default:
        break;
    }
  }
}

void ProtoParser::parse(WireReader reader, OnnxValueInfo& info) {
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        get_name(reader, "name", &info.name);
        break;
      case 2:
        info.has_type = true;
        get_message(reader, "type", info.type);
        break;
      default:
        break;
    }
  }
}

void ProtoParser::parse(WireReader reader, OnnxType& type) {
  const Nest nest(*this, reader.offset());
  while (next(reader)) {
    const uint32_t field = reader.field();
    if (field != 1 && field != 4 && field != 5 && (field < 7 || field > 9)) continue;
    if (!expect(reader, WireType::kBytes, "value")) return;
    const WireReader inner(reader.bytes(), reader.payload_offset());
    switch (field) {
      case 1:
        parse_tensor_type(inner, type);
        break;
      case 4:
        parse_layer(inner, OnnxType::Layer::kSequence, type);
        break;
      case 5:
        parse_map(inner, type);
        break;
      case 7:
        type.other = "opaque";
        break;
      case 8:
        type.other = "sparse tensor";
        break;
      case 9:
        parse_layer(inner, OnnxType::Layer::kOptional, type);
        break;
      default:
        break;
    }
  }
}

void ProtoParser::parse_map(WireReader reader, OnnxType& type) {
  type.other = "map";
  while (next(reader)) {
    if (reader.field() == 1) get(reader, "key_type", &type.map_key);
    if (reader.field() != 2) continue;
    OnnxType value;
    get_message(reader, "value_type", value);
    if (value.is_tensor && value.layers.empty()) type.map_value = value.element;
  }
}

void ProtoParser::parse_layer(WireReader reader, OnnxType::Layer layer, OnnxType& type) {
  type.layers.push_back(layer);
  while (next(reader)) {
    if (reader.field() == 1) get_message(reader, "elem_type", type);
  }
}

void ProtoParser::parse_tensor_type(WireReader reader, OnnxType& type) {
  type.is_tensor = true;
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        get(reader, "elem_type", &type.element);
        break;
      case 2:
        if (!expect(reader, WireType::kBytes, "shape")) return;
        type.has_shape = true;
        parse_shape(WireReader(reader.bytes(), reader.payload_offset()), type);
        break;
      default:
        break;
    }
  }
}

void ProtoParser::parse_shape(WireReader reader, OnnxType& type) {
  while (next(reader)) {
    if (reader.field() != 1) continue;
    if (!expect(reader, WireType::kBytes, "dim")) return;
    if (!charge(reader.offset(), 2 * sizeof(OnnxDim))) return;
    parse_dim(WireReader(reader.bytes(), reader.payload_offset()), type.dims.emplace_back());
  }
}

void ProtoParser::parse_dim(WireReader reader, OnnxDim& dim) {
  while (next(reader)) {
    switch (reader.field()) {
      case 1:
        get(reader, "dim_value", &dim.value);
        dim.kind = OnnxDim::Kind::kValue;
        break;
      case 2:
        get_name(reader, "dim_param", &dim.param);
        dim.kind = dim.param.empty() ? OnnxDim::Kind::kUnknown : OnnxDim::Kind::kParam;
        break;
      default:
        break;
    }
  }
}

void ProtoParser::parse(WireReader reader, OnnxValue& value) {
  const Nest nest(*this, reader.offset());
  while (next(reader)) parse_values_field(reader, value);
}

void ProtoParser::parse_values_field(const WireReader& reader, OnnxValue& value) {
  switch (reader.field()) {
    case 2: {
      int32_t kind = 0;
      get(reader, "elem_type", &kind);
      const bool is_known = kind == 0 || kind == 1 || kind == 3 || kind == 5;
      value.kind = is_known ? static_cast<OnnxValue::Kind>(kind) : OnnxValue::Kind::kOther;
      break;
    }
    case 3:
      add_message(reader, "tensor_value", value.tensors);
      break;
    case 5:
    case 7:
      add_message(reader, "value", value.values);
      break;
    default:
      break;
  }
}

namespace {

template <typename T>
Result<T> parse_one(std::span<const std::byte> bytes, const ImportLimits& limits) {
  MemoryBudget budget(limits);
  budget.add_file(bytes.size());
  ProtoParser parser(limits, budget);
  T value;
  parser.parse(WireReader(bytes), value);
  if (!parser.status().is_ok()) return parser.status();
  return value;
}

}  // namespace

Result<OnnxTensor> parse_tensor(std::span<const std::byte> bytes, const ImportLimits& limits) {
  return parse_one<OnnxTensor>(bytes, limits);
}

Result<OnnxValue> parse_value(std::span<const std::byte> bytes, const ImportLimits& limits) {
  return parse_one<OnnxValue>(bytes, limits);
}

}  // namespace eddy
