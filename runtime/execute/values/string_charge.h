// What strings take beside their tensor: their characters are on the heap, where no allocator sees
// them, so they are charged to the allocator of the strings' buffer (buffer.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

namespace eddy {

// A string of so many characters, as the standard library keeps it: short ones in themselves.
inline size_t heap_bytes(size_t length) {
  return length > std::string().capacity() ? length + 1 : 0;
}

// What they keep, which may be what longer ones before them needed.
inline size_t heap_bytes(std::span<const std::string> strings) {
  size_t sum = 0;
  for (const std::string& string : strings) sum += heap_bytes(string.capacity());
  return sum;
}

inline size_t longest(std::span<const std::string> strings) {
  size_t most = 0;
  for (const std::string& string : strings) most = std::max(most, string.size());
  return most;
}

}  // namespace eddy
