#include "graph/io/tensor_file.h"

#include <cstring>

#include "graph/base/check.h"
#include "graph/io/decode_tensor.h"
#include "graph/io/file_bytes.h"
#include "graph/io/parse_model.h"
#include "graph/io/tensor_proto.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

Result<HostValue> to_host(const OnnxTensor& tensor, const ImportLimits& limits) {
  if (tensor.is_external) {
    return unsupported("tensors of test data must hold their bytes themselves");
  }
  EDDY_ASSIGN_OR_RETURN(const DecodedTensor decoded, decode_tensor(tensor, limits));
  return HostValue::copy_of(decoded.view());
}

Result<HostValue> to_sequence(const OnnxValue& proto, const ValueType& expected,
                              const ImportLimits& limits) {
  HostValue sequence = HostValue::sequence(expected.tensor.element);
  for (const OnnxTensor& tensor : proto.tensors) {
    EDDY_ASSIGN_OR_RETURN(HostValue element, to_host(tensor, limits));
    sequence.element = element.element;
    sequence.elements.push_back(std::move(element));
  }
  for (const OnnxValue& value : proto.values) {
    EDDY_ASSIGN_OR_RETURN(HostValue element, to_sequence(value, expected, limits));
    sequence.elements.push_back(std::move(element));
  }
  return sequence;
}

Result<HostValue> to_optional(const OnnxValue& proto, const ValueType& expected,
                              const ImportLimits& limits) {
  switch (proto.kind) {
    case OnnxValue::Kind::kNone:
      return HostValue::none();
    case OnnxValue::Kind::kTensor:
      if (proto.tensors.empty()) return HostValue::none();
      return to_host(proto.tensors[0], limits);
    case OnnxValue::Kind::kSequence:
      if (proto.values.empty()) return HostValue::none();
      return to_sequence(proto.values[0], expected, limits);
    default:
      return unsupported("an optional of this kind is not supported");
  }
}

WireWriter sequence_proto(const HostValue& value, const std::string& name) {
  EDDY_CHECK(value.kind == HostValue::Kind::kSequence) << name << " is no sequence";
  const bool is_nested =
      !value.elements.empty() && value.elements[0].kind == HostValue::Kind::kSequence;
  WireWriter proto;
  if (!name.empty()) proto.bytes(1, name);
  proto.integer(
      2, static_cast<int64_t>(is_nested ? OnnxValue::Kind::kSequence : OnnxValue::Kind::kTensor));
  for (const HostValue& element : value.elements) {
    if (is_nested) {
      proto.message(5, sequence_proto(element, ""));
    } else if (element.kind == HostValue::Kind::kTensor) {
      proto.message(3, tensor_proto(element.view(), ""));
    }
  }
  return proto;
}

}  // namespace

Result<HostValue> parse_pb(std::span<const std::byte> bytes, const ValueType& expected,
                           const ImportLimits& limits) {
  if (expected.is_tensor()) {
    EDDY_ASSIGN_OR_RETURN(const OnnxTensor tensor, parse_tensor(bytes, limits));
    return to_host(tensor, limits);
  }
  EDDY_ASSIGN_OR_RETURN(const OnnxValue proto, parse_value(bytes, limits));
  return expected.is_sequence() ? to_sequence(proto, expected, limits)
                                : to_optional(proto, expected, limits);
}

std::string format_pb(const HostValue& value, const std::string& name) {
  if (value.kind == HostValue::Kind::kTensor) return tensor_proto(value.view(), name).data();
  if (value.kind == HostValue::Kind::kSequence) return sequence_proto(value, name).data();
  WireWriter proto;  // an empty optional
  if (!name.empty()) proto.bytes(1, name);
  proto.integer(2, 0);
  return proto.data();
}

Result<HostValue> read_value(const std::string& path, const ValueType& expected,
                             const ImportLimits& limits) {
  const bool is_npy = path.ends_with(".npy");
  if (!is_npy && !path.ends_with(".pb")) {
    return invalid_argument(quoted_path(path) + " is neither a .npy nor a .pb file");
  }
  EDDY_ASSIGN_OR_RETURN(const auto file, read_file(path, limits.max_file_bytes));
  Result<HostValue> value =
      is_npy ? parse_npy(file->bytes(), limits) : parse_pb(file->bytes(), expected, limits);
  if (value.is_ok()) return value;
  Status status = value.take_status();
  return std::move(status.prepend_message(quoted_path(path)));
}

Status write_value(const std::string& path, const HostValue& value) {
  if (path.ends_with(".pb")) return write_file(path, format_pb(value, ""));
  if (!path.ends_with(".npy")) {
    return invalid_argument(quoted_path(path) + " is neither a .npy nor a .pb file");
  }
  Result<std::string> content = format_npy(value);
  if (content.is_ok()) return write_file(path, *content);
  Status status = content.take_status();
  return std::move(status.prepend_message(quoted_path(path)));
}

}  // namespace eddy
