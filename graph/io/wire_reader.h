// WireReader: walks the fields of one protobuf message without copying.
//
//   WireReader reader(bytes, offset_in_file);
//   while (reader.next()) switch (reader.field()) { case 1: name = reader.bytes(); ... }
//   if (!reader.is_ok()) complain(reader.offset(), reader.error());
//
// Every length is checked against the bytes that remain, so no input can make it read past its
// span; fields that are not read are skipped. Accessors return whether the
// field has the wire type requested; the reader itself has no schema. Groups (wire types 3 and
// 4, unused by ONNX) are an error.
//
// Errors: the first one sticks, and next() is false from then on. Threads: as a plain value.
// Cost: O(1) a field. Source: the Protocol Buffers encoding specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/base/check.h"

namespace eddy {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

class WireReader {
 public:
  // `base_offset` is where `bytes` begin in the file; only for messages.
  explicit WireReader(std::span<const std::byte> bytes, size_t base_offset = 0)
      : bytes_(bytes), base_offset_(base_offset) {}

  // Reads the next field, tag and payload. False at the end of the message and on error.
  bool next();

  bool is_ok() const { return error_ == nullptr; }
  const char* error() const { return error_; }  // a literal; null when ok

  // Number and wire type of the current field.
  uint32_t field() const { return field_; }
  WireType type() const { return type_; }
  // The payload: of varints and fixed numbers the bits, of length-delimited fields the bytes.
  uint64_t number() const {
    EDDY_DCHECK(type_ != WireType::kBytes) << "field " << field_ << " holds bytes";
    return number_;
  }
  std::span<const std::byte> bytes() const {
    EDDY_DCHECK(type_ == WireType::kBytes) << "field " << field_ << " holds a number";
    return payload_;
  }

  // Position of the current field in the file, or of the error.
  size_t offset() const { return base_offset_ + field_start_; }
  // Position in the file of the current field's payload.
  size_t payload_offset() const { return base_offset_ + payload_start_; }

 private:
  bool fail(const char* error);
  bool read_varint(uint64_t* value);
  bool read_fixed(size_t size_bytes);
  bool read_bytes();

  std::span<const std::byte> bytes_;
  size_t base_offset_;
  size_t position_ = 0;
  size_t field_start_ = 0;
  size_t payload_start_ = 0;
  const char* error_ = nullptr;
  uint32_t field_ = 0;
  WireType type_ = WireType::kVarint;
  uint64_t number_ = 0;
  std::span<const std::byte> payload_;
};

// The varints of a packed field, one after another. False at the end and on error (is_ok()).
class PackedReader {
 public:
  explicit PackedReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool next(uint64_t* value);
  bool is_ok() const { return is_ok_; }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool is_ok_ = true;
};

}  // namespace eddy
