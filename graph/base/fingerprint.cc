#include "graph/base/fingerprint.h"

#include <cstring>

#include "graph/base/check.h"

namespace eddy {
namespace {

// Both halves of the product.
uint64_t fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

const char* Fingerprint::add_blocks(const char* next, size_t num_blocks) {
  uint64_t lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = a_ + i * kFactorB;
  for (; num_blocks > 0; --num_blocks, next += kBlockBytes) {
    uint64_t words[2 * kLanes];
    std::memcpy(words, next, kBlockBytes);
    for (size_t i = 0; i < kLanes; ++i) {
      lanes[i] = fold(words[2 * i] ^ kFactorA, words[2 * i + 1] ^ lanes[i]);
    }
  }
  for (const uint64_t lane : lanes) add(lane);
  return next;
}

void Fingerprint::add_bytes(const void* bytes, size_t size_bytes) {
  EDDY_DCHECK(bytes != nullptr || size_bytes == 0) << size_bytes << " bytes nowhere";
  const char* next = static_cast<const char*>(bytes);
  add(uint64_t{size_bytes});
  if (size_bytes >= kBlockBytes) next = add_blocks(next, size_bytes / kBlockBytes);
  size_bytes %= kBlockBytes;
  uint64_t word = 0;
  for (; size_bytes >= sizeof(word); size_bytes -= sizeof(word), next += sizeof(word)) {
    std::memcpy(&word, next, sizeof(word));
    add(word);
  }
  if (size_bytes == 0) return;
  EDDY_DCHECK(size_bytes < sizeof(word)) << size_bytes << " bytes are left";
  word = 0;
  std::memcpy(&word, next, size_bytes);
  add(word);
}

std::string Fingerprint::text() const {
  constexpr char kDigits[] = "0123456789abcdef";
  // Every bit of the state reaches every digit.
  Fingerprint last = *this;
  for (int round = 0; round < 4; ++round) last.add(last.a_ ^ (last.b_ << 1 | last.b_ >> 63));
  std::string digits;
  for (const uint64_t half : {last.a_, last.b_}) {
    for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[half >> shift & 15];
  }
  EDDY_DCHECK(digits.size() == 32) << digits;
  return digits;
}

}  // namespace eddy
