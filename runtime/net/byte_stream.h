// ByteWriter, ByteReader: numbers and texts as bytes, the lowest first, the same on every
// processor.
//
// A reader takes any bytes: behind the end it gives zeros and is_good() is false. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

class ByteWriter {
 public:
  void number(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      bytes_.push_back(static_cast<std::byte>(value >> shift & 0xff));
    }
  }
  void text(std::string_view text) {
    number(text.size());
    const auto* const first = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), first, first + text.size());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}
  uint64_t number() {
    if (left_.size() < 8) return fail();
    uint64_t value = 0;
    for (size_t i = 0; i < 8; ++i) value |= std::to_integer<uint64_t>(left_[i]) << (8 * i);
    left_ = left_.subspan(8);
    return value;
  }
  // At most `limit`.
  template <typename T>
  T number_up_to(T limit) {
    const uint64_t value = number();
    return value <= static_cast<uint64_t>(limit) ? static_cast<T>(value) : static_cast<T>(fail());
  }
  // How many there are, of at least `unit_bytes` each.
  size_t size(size_t unit_bytes) {
    EDDY_DCHECK(unit_bytes > 0) << "what takes no bytes may be there any number of times";
    const uint64_t size = number();
    return size <= left_.size() / unit_bytes ? size : fail();
  }
  std::string text() {
    const size_t count = size(1);
    std::string text(reinterpret_cast<const char*>(left_.data()), count);
    left_ = left_.subspan(count);
    return text;
  }
  bool is_good() const { return is_good_; }
  bool is_at_end() const { return left_.empty(); }

 private:
  size_t fail() {
    is_good_ = false;
    left_ = {};
    return 0;
  }

  std::span<const std::byte> left_;
  bool is_good_ = true;
};

}  // namespace eddy
