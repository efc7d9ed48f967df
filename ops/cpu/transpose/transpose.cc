#include "ops/cpu/transpose/transpose.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

namespace eddy::cpu {
namespace {

// Elements of a cache line.
constexpr int64_t kLine = 16;
// Lines of the side whose lines lie close together: they stay in the first-level cache.
constexpr int64_t kNear = 32;

void transpose_four(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride) {
  const auto load = [&](int64_t b) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + b * in_stride));
  };
  const auto store = [&](int64_t a, __m128i row) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + a * out_stride), row);
  };
  const __m128i r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
  const __m128i low01 = _mm_unpacklo_epi32(r0, r1), low23 = _mm_unpacklo_epi32(r2, r3);
  const __m128i high01 = _mm_unpackhi_epi32(r0, r1), high23 = _mm_unpackhi_epi32(r2, r3);
  store(0, _mm_unpacklo_epi64(low01, low23));
  store(1, _mm_unpackhi_epi64(low01, low23));
  store(2, _mm_unpacklo_epi64(high01, high23));
  store(3, _mm_unpackhi_epi64(high01, high23));
}

// What the blocks of four leave: the last columns, then the last rows.
void transpose_rest(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride,
                    int64_t rows, int64_t columns) {
  const int64_t full_rows = rows & ~int64_t{3}, full_columns = columns & ~int64_t{3};
  for (int64_t a = 0; a < rows; ++a) {
    for (int64_t b = a < full_rows ? full_columns : 0; b < columns; ++b) {
      out[a * out_stride + b] = in[a + b * in_stride];
    }
  }
}

// The input's lines lie far apart: four at a time, each to its end. At most kLine rows.
void transpose_far_input(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride,
                         int64_t rows, int64_t columns) {
  for (int64_t b = 0; b + 4 <= columns; b += 4) {
    for (int64_t a = 0; a + 4 <= rows; a += 4) {
      transpose_four(in + a + b * in_stride, in_stride, out + a * out_stride + b, out_stride);
    }
  }
  transpose_rest(in, in_stride, out, out_stride, rows, columns);
}

// The result's lines lie far apart: four at a time, each to its end. At most kLine columns.
void transpose_far_output(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride,
                          int64_t rows, int64_t columns) {
  for (int64_t a = 0; a + 4 <= rows; a += 4) {
    for (int64_t b = 0; b + 4 <= columns; b += 4) {
      transpose_four(in + a + b * in_stride, in_stride, out + a * out_stride + b, out_stride);
    }
  }
  transpose_rest(in, in_stride, out, out_stride, rows, columns);
}

// The same where the result's lines compete for places: each is put together nearby and written
// at once.
void transpose_competing_output(const uint32_t* in, int64_t in_stride, uint32_t* out,
                                int64_t out_stride, int64_t rows, int64_t columns) {
  if (columns != kLine) {
    return transpose_far_output(in, in_stride, out, out_stride, rows, columns);
  }
  for (int64_t a = 0; a + 4 <= rows; a += 4) {
    alignas(64) uint32_t lines[4 * kLine];
    for (int64_t b = 0; b < kLine; b += 4) {
      transpose_four(in + a + b * in_stride, in_stride, lines + b, kLine);
    }
    for (int64_t i = 0; i < 4; ++i) {
      std::memcpy(out + (a + i) * out_stride, lines + i * kLine, kLine * sizeof(uint32_t));
    }
  }
  transpose_rest(in, in_stride, out, out_stride, rows, columns);
}

}  // namespace

void transpose_words(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride,
                     int64_t rows, int64_t columns) {
  const bool is_output_far = out_stride > in_stride;
  const int64_t height = is_output_far ? kNear : kLine;
  const int64_t width = is_output_far ? kLine : kNear;
  // A few KiB apart, or a large part of one.
  const bool is_competing = is_output_far && out_stride % 128 == 0 && out_stride >= 512;
  const auto transpose = is_competing    ? transpose_competing_output
                         : is_output_far ? transpose_far_output
                                         : transpose_far_input;
  for (int64_t b = 0; b < columns; b += width) {
    for (int64_t a = 0; a < rows; a += height) {
      transpose(in + a + b * in_stride, in_stride, out + a * out_stride + b, out_stride,
                std::min(height, rows - a), std::min(width, columns - b));
    }
  }
}

}  // namespace eddy::cpu
