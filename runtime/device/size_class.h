// Size classes of pooling allocators: four for each power of two from 64 bytes on, each a multiple
// of 64, so that at most a quarter of a block is wasted.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "graph/base/check.h"

namespace eddy {

constexpr size_t kSizeClassAlignment = 64;
constexpr size_t kNumSizeClasses = 240;
constexpr size_t kMaxPooledBytes = size_t{1} << 48;  // no larger size has a class

// The smallest class that holds size_bytes < kMaxPooledBytes.
constexpr size_t size_class_of(size_t size_bytes) {
  EDDY_DCHECK(size_bytes < kMaxPooledBytes) << "no class holds " << size_bytes << " bytes";
  size_bytes = std::max<size_t>(size_bytes, kSizeClassAlignment);
  const int log2 = std::bit_width(size_bytes - 1) - 1;  // 2^log2 <= size_bytes - 1
  const size_t base = size_t{1} << log2;
  const size_t step = std::max<size_t>(base / 4, 1);
  const size_t quarter = (size_bytes - base + step - 1) / step;  // 1..4, or 0 at a power of two
  return static_cast<size_t>(log2) * 4 + quarter;
}

constexpr size_t size_class_bytes(size_t size_class) {
  EDDY_DCHECK(size_class < kNumSizeClasses) << "class " << size_class;
  const size_t base = size_t{1} << (size_class / 4);
  const size_t bytes = base + (size_class % 4) * std::max<size_t>(base / 4, 1);
  return (bytes + kSizeClassAlignment - 1) / kSizeClassAlignment * kSizeClassAlignment;
}

static_assert(size_class_of(kMaxPooledBytes - 1) < kNumSizeClasses, "the largest size has a class");
static_assert(size_class_bytes(size_class_of(kSizeClassAlignment)) == kSizeClassAlignment,
              "the smallest class wastes nothing");
static_assert(size_class_bytes(size_class_of(1025)) == 1280, "four classes for a power of two");
}  // namespace eddy
