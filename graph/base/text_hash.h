// text_hash: 64 bits of a text, the same on every machine and in every version: random numbers and
// drawn decisions are functions of it. Not for keys that have to differ.
//
// Threads: pure. Cost: a multiplication a byte. Source: FNV-1a (Fowler, Noll, Vo).
#pragma once

#include <cstdint>
#include <string_view>

namespace eddy {

constexpr uint64_t text_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace eddy
