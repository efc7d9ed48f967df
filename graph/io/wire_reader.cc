#include "graph/io/wire_reader.h"

#include <cstring>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr int kMaxVarintBytes = 10;

// Bytes used, or 0 when the varint is truncated, -1 when it does not fit 64 bits.
int decode_varint(std::span<const std::byte> bytes, size_t position, uint64_t* value) {
  uint64_t result = 0;
  for (int i = 0; i < kMaxVarintBytes; ++i) {
    if (position + static_cast<size_t>(i) >= bytes.size()) return 0;
    const uint64_t byte = std::to_integer<uint64_t>(bytes[position + static_cast<size_t>(i)]);
    if (i == kMaxVarintBytes - 1 && byte > 1) return -1;
    result |= (byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      *value = result;
      return i + 1;
    }
  }
  return -1;
}

}  // namespace

bool WireReader::fail(const char* error) {
  EDDY_DCHECK(error_ == nullptr) << "the first error sticks: " << error_;
  error_ = error;
  return false;
}

bool WireReader::read_varint(uint64_t* value) {
  const int used = decode_varint(bytes_, position_, value);
  if (used == 0) return fail("the file ends inside a number");
  if (used < 0) return fail("a number is longer than 64 bits");
  position_ += static_cast<size_t>(used);
  return true;
}

bool WireReader::read_fixed(size_t size_bytes) {
  EDDY_DCHECK(size_bytes <= sizeof(number_) && position_ <= bytes_.size()) << size_bytes;
  if (bytes_.size() - position_ < size_bytes) return fail("the file ends inside a number");
  number_ = 0;
  std::memcpy(&number_, bytes_.data() + position_, size_bytes);
  position_ += size_bytes;
  return true;
}

bool WireReader::read_bytes() {
  uint64_t length = 0;
  if (!read_varint(&length)) return false;
  if (length > bytes_.size() - position_) {
    return fail("a field is longer than what is left of its message");
  }
  payload_start_ = position_;
  payload_ = bytes_.subspan(position_, static_cast<size_t>(length));
  position_ += static_cast<size_t>(length);
  return true;
}

bool WireReader::next() {
  if (error_ != nullptr || position_ == bytes_.size()) return false;
  field_start_ = position_;
  uint64_t tag = 0;
  if (!read_varint(&tag)) return false;
  if (tag > UINT32_MAX || tag >> 3 == 0) return fail("not a field tag");
  field_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<WireType>(tag & 7);
  payload_start_ = position_;
  payload_ = {};
  switch (type_) {
    case WireType::kVarint:
      return read_varint(&number_);
    case WireType::kFixed64:
      return read_fixed(8);
    case WireType::kBytes:
      return read_bytes();
    case WireType::kFixed32:
      return read_fixed(4);
  }
  return fail("not a field tag");
}

bool PackedReader::next(uint64_t* value) {
  if (!is_ok_ || position_ == bytes_.size()) return false;
  const int used = decode_varint(bytes_, position_, value);
  is_ok_ = used > 0;
  position_ += is_ok_ ? static_cast<size_t>(used) : 0;
  return is_ok_;
}

}  // namespace eddy
