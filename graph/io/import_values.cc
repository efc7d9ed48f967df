// Constants and attributes of imported nodes.
#include "graph/base/check.h"
#include "graph/io/importer.h"
#include "graph/io/onnx_types.h"
#include "graph/io/sparse_tensor.h"
#include "graph/io/text.h"

namespace eddy {

// Constants that can't stay in their file are decoded, copied, or both: charged before.
Result<DecodedTensor> Importer::decode_charged(const OnnxTensor& tensor) {
  const bool is_typed = !tensor.is_external && !tensor.has_raw_data;
  if (is_typed) {
    EDDY_ASSIGN_OR_RETURN(const TensorLayout layout, layout_of(tensor, options_.limits));
    // The fields hold at least one number for each two elements, or decoding fails.
    const size_t given = tensor.float_data.size() + tensor.int32_data.size() +
                         tensor.int64_data.size() + tensor.double_data.size() +
                         tensor.uint64_data.size() + tensor.string_data.size();
    const auto count = std::min(static_cast<uint64_t>(layout.count), uint64_t{2} * given);
    if (!budget_.charge(count * element_size_bytes(layout.element))) return budget_.error();
  }
  EDDY_ASSIGN_OR_RETURN(DecodedTensor decoded, tensor.is_external
                                                   ? external_.load(tensor)
                                                   : decode_tensor(tensor, options_.limits));
  // A small one that stays in its file keeps up to 2 MiB around it in memory, as the system caches
  // files in large pieces.
  constexpr size_t kMinBorrowedBytes = 32 << 10;
  decoded.is_borrowable &= decoded.view().size_bytes() >= kMinBorrowedBytes;
  if (!decoded.is_borrowable && !budget_.charge(decoded.view().size_bytes())) {
    return budget_.error();
  }
  return decoded;
}

Result<DecodedTensor> Importer::decode(const OnnxTensor& tensor) {
  Result<DecodedTensor> decoded = decode_charged(tensor);
  if (decoded.is_ok()) return decoded;
  Status status = decoded.take_status();
  return std::move(status.prepend_message("tensor " + quoted(tensor.name) + " at offset " +
                                          std::to_string(tensor.offset)));
}

Result<DecodedTensor> Importer::decode_charged(const OnnxSparseTensor& sparse) {
  EDDY_ASSIGN_OR_RETURN(const TensorLayout layout, layout_of(sparse, options_.limits));
  // Once to decode it, once as the builder's copy.
  if (!budget_.charge(dense_bytes(layout, 2))) {
    Status status = budget_.error();
    return std::move(status.append_message("or store the tensor with all its elements"));
  }
  Result<DecodedTensor> values = decode_charged(sparse.values);
  if (!values.is_ok()) return std::move(values.take_status().prepend_message("values"));
  if (!sparse.has_indices) return decode_sparse(layout, *values, nullptr);
  Result<DecodedTensor> indices = decode_charged(sparse.indices);
  if (!indices.is_ok()) return std::move(indices.take_status().prepend_message("indices"));
  return decode_sparse(layout, *values, &*indices);
}

Result<DecodedTensor> Importer::decode(const OnnxSparseTensor& sparse) {
  Result<DecodedTensor> decoded = decode_charged(sparse);
  if (decoded.is_ok()) return decoded;
  Status status = decoded.take_status();
  return std::move(status.prepend_message("sparse tensor " + quoted(sparse.values.name)));
}

Value Importer::make_constant(Result<DecodedTensor> decoded, std::string name) {
  if (!decoded.is_ok()) {
    fail(decoded.take_status());
    return {};
  }
  if (decoded->is_borrowable) {
    return builder_.constant_in_blob(decoded->view(), std::move(name));
  }
  const Value value = builder_.constant(decoded->view(), std::move(name));
  count_copied(decoded->view().size_bytes());
  return value;
}

void Importer::count_copied(size_t size_bytes) {
  constexpr size_t kEvictBytes = 8 << 20;
  num_copied_bytes_ += size_bytes;
  if (num_copied_bytes_ < kEvictBytes) return;
  evict_files_();
  num_copied_bytes_ = 0;
}

bool Importer::import_constant(const NodeContext& at) {
  if (at.attributes.size() != 1 || at.node.outputs.empty()) {
    return fail_at(at, "needs exactly one value and one output");
  }
  const auto& [name, attribute] = at.attributes[0];
  const Value value = constant_of(at, name, *attribute);
  if (!is_ok()) return false;
  return bind_outputs(at, std::span(&value, 1));
}

Value Importer::constant_of(const NodeContext& at, std::string_view name,
                            const OnnxAttribute& attribute) {
  EDDY_CHECK(!at.node.outputs.empty()) << "a constant without an output";
  const std::string label = value_name(at.scope, at.node.outputs[0]);
  const auto make = [&](ElementType element, const void* data, Dims dims) {
    return builder_.constant({const_cast<void*>(data), dims.data(), dims.rank(), element}, label);
  };
  const auto length = [](const auto& list) { return Dims{static_cast<int64_t>(list.size())}; };
  if (name == "value" && attribute.tensors.size() == 1) {
    return make_constant(decode(attribute.tensors[0]), label);
  }
  if (name == "sparse_value" && attribute.sparse_tensors.size() == 1) {
    return make_constant(decode(attribute.sparse_tensors[0]), label);
  }
  if (name == "value_int") return make(ElementType::kInt64, &attribute.i, {});
  if (name == "value_float") return make(ElementType::kFloat, &attribute.f, {});
  if (name == "value_ints") {
    return make(ElementType::kInt64, attribute.ints.data(), length(attribute.ints));
  }
  if (name == "value_floats") {
    return make(ElementType::kFloat, attribute.floats.data(), length(attribute.floats));
  }
  if (name == "value_string" || name == "value_strings") {
    const bool is_one = name == "value_string";
    std::vector<std::string> strings(attribute.strings.begin(), attribute.strings.end());
    if (is_one) strings.assign(1, std::string(attribute.s));
    return make(ElementType::kString, strings.data(), is_one ? Dims{} : length(strings));
  }
  fail_at(at, "has no value, but attribute " + quoted(name));
  return {};
}

bool Importer::to_attributes(const NodeContext& at, Attributes* attributes) {
  // No operator has nearly as many; checking them is not linear.
  constexpr size_t kMaxAttributes = 256;
  if (at.attributes.size() > kMaxAttributes) {
    return fail_at(at, "has " + std::to_string(at.attributes.size()) + " attributes, at most " +
                           std::to_string(kMaxAttributes) + " are allowed");
  }
  for (const auto& [name, attribute] : at.attributes) {
    std::optional<AttributeValue> value = to_attribute(at, *attribute);
    if (!value) return false;
    attributes->set(std::string(name), std::move(*value));
  }
  return true;
}

std::optional<AttributeValue> Importer::to_attribute(const NodeContext& at,
                                                     const OnnxAttribute& from) {
  const auto refuse = [&](Status status) {
    status.prepend_message("attribute " + quoted(from.name));
    fail_at(at, std::move(status));
    return std::nullopt;
  };
  switch (from.type) {
    case OnnxAttributeType::kInt:
      return from.i;
    case OnnxAttributeType::kFloat:
      return from.f;
    case OnnxAttributeType::kString:
      return std::string(from.s);
    case OnnxAttributeType::kInts:
      return from.ints;
    case OnnxAttributeType::kFloats:
      return from.floats;
    case OnnxAttributeType::kStrings:
      return std::vector<std::string>(from.strings.begin(), from.strings.end());
    case OnnxAttributeType::kTensor: {
      if (from.tensors.size() != 1) return refuse(invalid_argument("holds no tensor"));
      Result<DecodedTensor> decoded = decode(from.tensors[0]);
      if (!decoded.is_ok()) return refuse(decoded.take_status());
      return builder_.make_constant(decoded->view());
    }
    case OnnxAttributeType::kType: {
      if (from.types.size() != 1) return refuse(invalid_argument("holds no type"));
      Result<ValueType> type = to_value_type(
          from.types[0], [&](std::string_view name) { return builder_.symbol(name); });
      if (!type.is_ok()) return refuse(type.take_status());
      return *type;
    }
    default:
      return refuse(unsupported("is of a kind that Eddy does not read"));
  }
}

}  // namespace eddy
