#include "graph/base/fingerprint.h"

#include <cstring>

namespace eddy {

void Fingerprint::add_bytes(const void* bytes, size_t size_bytes) {
  const char* next = static_cast<const char*>(bytes);
  add(uint64_t{size_bytes});
  uint64_t word = 0;
  for (; size_bytes >= sizeof(word); size_bytes -= sizeof(word), next += sizeof(word)) {
    std::memcpy(&word, next, sizeof(word));
    add(word);
  }
  if (size_bytes == 0) return;
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
  return digits;
}

}  // namespace eddy
