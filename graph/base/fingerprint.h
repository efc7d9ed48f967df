// Fingerprint: 128 bits that stand for what was added, in order: the same in every process and on
// every machine of the same byte order.
//
// It separates inputs that differ by accident. It is no protection against forgery.
// Contract: each add() is framed by its size where it has one, so "ab", "c" and "a", "bc" differ.
// Long runs of bytes go in blocks of eight words, two into each of four lanes that do not wait for
// each other.
// Cost: long runs some 15 GB/s, single words some 3. Sources: the multiply-and-shift mixing of
// MurmurHash3's finalizer; for blocks, the folded product of wyhash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy {

class Fingerprint {
 public:
  void add(uint64_t word) {
    a_ = mix(a_ ^ word, kFactorA);
    b_ = mix(b_ + word, kFactorB);
  }
  void add(std::string_view text) { add_bytes(text.data(), text.size()); }
  void add_bytes(const void* bytes, size_t size_bytes);

  bool operator==(const Fingerprint&) const = default;

  // 32 hexadecimal digits.
  std::string text() const;

 private:
  static constexpr size_t kLanes = 4;
  static constexpr size_t kBlockBytes = 2 * kLanes * sizeof(uint64_t);
  static_assert((kBlockBytes & (kBlockBytes - 1)) == 0, "the rest of a run is a mask away");
  static constexpr uint64_t kFactorA = 0xff51afd7ed558ccdu;
  static constexpr uint64_t kFactorB = 0xc4ceb9fe1a85ec53u;

  // Returns the end of the blocks.
  const char* add_blocks(const char* next, size_t num_blocks);
  static uint64_t mix(uint64_t value, uint64_t factor) {
    value *= factor;
    return value ^ (value >> 32);
  }

  uint64_t a_ = 0x9e3779b97f4a7c15u;
  uint64_t b_ = 0xd1b54a32d192ed03u;
};

}  // namespace eddy
