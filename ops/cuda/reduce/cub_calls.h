// What CUB's algorithms are asked to do with one long line: plain structs, the same for the host,
// for what nvcc compiles and for tests.
//
// Element j of a line is in[j * stride]. Addresses are the device's. What the calls compute beyond
// CUB's own algorithms is long_line_inl.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eddy::cuda {

enum class LineType : int32_t { kF32, kF64, kF16, kBf16, kI8, kU8, kI32, kI64 };

struct LongLine {
  LineType type;
  const void* in;
  void* out;
  uint64_t length;  // > 0
  int64_t stride;   // in elements
};

enum class LineSum : int32_t { kSum, kProd, kMean, kL1, kL2, kLogSum, kSumSquare };

// out[0]: the sum, of the kind in LineSum; of integers only kSum and kProd.
struct SumCall {
  LongLine line;
  LineSum sum;
};

// out[0]: the most extreme element, or (int64) its place.
struct ExtremeCall {
  LongLine line;
  int32_t is_least;
  int32_t takes_last;  // of equals
  int32_t gives_place;
};

// out, strided as in: the running sums of integers.
struct CumSumCall {
  LongLine line;
  int32_t is_exclusive;
  int32_t is_reverse;
};

// out, strided as in: the k first in order; of equals the smaller place first.
struct TopKCall {
  LongLine line;  // of at most kMostSorted elements
  uint64_t k;
  int64_t* places;  // strided likewise, or null
  int32_t is_largest;
};
inline constexpr uint64_t kMostSorted = INT32_MAX;

}  // namespace eddy::cuda
