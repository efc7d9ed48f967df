#include "graph/io/proto_parser.h"

#include <bit>

#include "graph/io/text.h"

namespace eddy {
namespace {

constexpr const char* kDamaged = "; this is no ONNX file, or it was cut: fetch it again";

const char* wire_type_name(WireType type) {
  switch (type) {
    case WireType::kVarint:
      return "a number";
    case WireType::kFixed64:
      return "a 64-bit number";
    case WireType::kBytes:
      return "bytes";
    case WireType::kFixed32:
      return "a 32-bit number";
  }
  return "an unknown wire type";
}

}  // namespace

bool ProtoParser::next(WireReader& reader) {
  if (!status_.is_ok()) return false;
  if (reader.next()) return true;
  if (!reader.is_ok()) fail(reader.offset(), "", reader.error() + std::string(kDamaged));
  return false;
}

void ProtoParser::fail(size_t offset, const char* field, std::string_view what) {
  if (!status_.is_ok()) return;
  std::string path;
  for (const PathPart& part : path_) {
    if (!path.empty()) path += '.';
    path += part.name;
    if (part.index != kNoIndex) path += '[' + std::to_string(part.index) + ']';
  }
  if (*field != '\0') path += (path.empty() ? "" : ".") + std::string(field);
  status_ = invalid_argument("offset " + std::to_string(offset) +
                             (path.empty() ? "" : " (" + path + ")") + ": " + std::string(what));
}

void ProtoParser::fail_limit(size_t offset, std::string_view what) {
  if (!status_.is_ok()) return;
  fail(offset, "", what);
  status_ = resource_exhausted(status_.message());
}

bool ProtoParser::expect(const WireReader& reader, WireType type, const char* field) {
  if (reader.type() == type) return true;
  fail(reader.offset(), field,
       std::string("expected ") + wire_type_name(type) + ", found " +
           wire_type_name(reader.type()) + kDamaged);
  return false;
}

void ProtoParser::get(const WireReader& reader, const char* field, int64_t* value) {
  if (expect(reader, WireType::kVarint, field)) *value = static_cast<int64_t>(reader.number());
}

void ProtoParser::get(const WireReader& reader, const char* field, int32_t* value) {
  if (expect(reader, WireType::kVarint, field)) *value = static_cast<int32_t>(reader.number());
}

void ProtoParser::get(const WireReader& reader, const char* field, float* value) {
  if (!expect(reader, WireType::kFixed32, field)) return;
  *value = std::bit_cast<float>(static_cast<uint32_t>(reader.number()));
}

void ProtoParser::get_bytes(const WireReader& reader, const char* field,
                            std::span<const std::byte>* value) {
  if (expect(reader, WireType::kBytes, field)) *value = reader.bytes();
}

void ProtoParser::get_string(const WireReader& reader, const char* field, std::string_view* value) {
  if (!expect(reader, WireType::kBytes, field)) return;
  *value = {reinterpret_cast<const char*>(reader.bytes().data()), reader.bytes().size()};
}

void ProtoParser::get_name(const WireReader& reader, const char* field, std::string_view* value) {
  get_string(reader, field, value);
  if (!status_.is_ok()) return;
  if (value->size() > limits_.max_name_bytes) {
    return fail_limit(reader.offset(), std::string(field) + " is a name of " +
                                           std::to_string(value->size()) + " bytes, at most " +
                                           std::to_string(limits_.max_name_bytes) + " are allowed");
  }
  if (!is_clean_utf8(*value)) {
    fail(reader.offset(), field, "a name must be UTF-8 text without control characters");
  }
}

void ProtoParser::add_name(const WireReader& reader, const char* field,
                           std::vector<std::string_view>& to) {
  if (!charge(reader.offset(), 2 * sizeof(std::string_view))) return;
  get_name(reader, field, &to.emplace_back());
}

void ProtoParser::add_string(const WireReader& reader, const char* field,
                             std::vector<std::string_view>& to) {
  // It becomes a std::string later.
  if (!charge(reader.offset(), 2 * sizeof(std::string_view) + 2 * sizeof(std::string))) return;
  get_string(reader, field, &to.emplace_back());
}

}  // namespace eddy
