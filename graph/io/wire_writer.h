// WireWriter: builds one protobuf message in memory. Nested messages are written by a writer of
// their own and then put in as bytes.
//
// Zero and empty values are written too: presence is the caller's decision.
// Threads: as std::string. Cost: O(1) a field plus its bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graph/base/check.h"

namespace eddy {

class WireWriter {
 public:
  void varint(uint32_t field, uint64_t value) {
    put_tag(field, 0);
    put_varint(value);
  }
  void integer(uint32_t field, int64_t value) { varint(field, static_cast<uint64_t>(value)); }
  void float32(uint32_t field, float value) {
    put_tag(field, 5);
    put_fixed32(std::bit_cast<uint32_t>(value));
  }
  void bytes(uint32_t field, std::string_view value) {
    put_tag(field, 2);
    put_varint(value.size());
    out_.append(value);
  }
  void message(uint32_t field, const WireWriter& inner) { bytes(field, inner.out_); }
  void packed_integers(uint32_t field, std::span<const int64_t> values) {
    WireWriter inner;
    for (int64_t value : values) inner.put_varint(static_cast<uint64_t>(value));
    message(field, inner);
  }
  void packed_floats(uint32_t field, std::span<const float> values) {
    WireWriter inner;
    for (float value : values) inner.put_fixed32(std::bit_cast<uint32_t>(value));
    message(field, inner);
  }

  const std::string& data() const { return out_; }

 private:
  void put_tag(uint32_t field, uint32_t wire_type) {
    EDDY_DCHECK(field > 0 && field < (1u << 29)) << "field " << field;
    put_varint(field << 3 | wire_type);
  }
  void put_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }
  void put_fixed32(uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) {
      out_.push_back(static_cast<char>(value >> shift & 0xff));
    }
  }

  std::string out_;
};

}  // namespace eddy
