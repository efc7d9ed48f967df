#include "ops/cpu/transpose/transpose.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "ops/cpu/isa/isa.h"
#include "ops/cpu/transpose/transpose_avx512.h"

namespace eddy::cpu {
namespace {

// Elements of a cache line.
constexpr int64_t kLine = 16;
// The lines handled together on the side whose lines lie close: they stay in the first-level cache.
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

// 16 x 16 bytes. One round moves the byte of row r and column c, seen as the number 16r + c, to
// twice that (modulo 255): four rounds exchange r and c.
void transpose_sixteen(const uint8_t* in, int64_t in_stride, uint8_t* out, int64_t out_stride) {
  __m128i rows[16], turned[16];
  for (int64_t b = 0; b < 16; ++b) {
    rows[b] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + b * in_stride));
  }
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 8; ++i) {
      turned[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 8]);
      turned[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 8]);
    }
    std::copy(turned, turned + 16, rows);
  }
  for (int64_t a = 0; a < 16; ++a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + a * out_stride), rows[a]);
  }
}

// What whole blocks leave: the last columns, then the last rows.
template <int64_t kBlock = 4, typename Element>
void transpose_rest(const Element* in, int64_t in_stride, Element* out, int64_t out_stride,
                    int64_t rows, int64_t columns) {
  const int64_t full_rows = rows & -kBlock, full_columns = columns & -kBlock;
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

void transpose_by_fours(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride,
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

}  // namespace

void transpose_words(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride,
                     int64_t rows, int64_t columns) {
  static const auto transpose =
      instructions().has_avx512 ? transpose_words_avx512 : transpose_by_fours;
  transpose(in, in_stride, out, out_stride, rows, columns);
}

void transpose_bytes(const uint8_t* in, int64_t in_stride, uint8_t* out, int64_t out_stride,
                     int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 64;  // a line of each side
  for (int64_t b = 0; b < columns; b += kTile) {
    for (int64_t a = 0; a < rows; a += kTile) {
      const uint8_t* const from = in + a + b * in_stride;
      uint8_t* const to = out + a * out_stride + b;
      const int64_t height = std::min(kTile, rows - a), width = std::min(kTile, columns - b);
      for (int64_t j = 0; j + 16 <= width; j += 16) {
        for (int64_t i = 0; i + 16 <= height; i += 16) {
          transpose_sixteen(from + i + j * in_stride, in_stride, to + i * out_stride + j,
                            out_stride);
        }
      }
      transpose_rest<16>(from, in_stride, to, out_stride, height, width);
    }
  }
}

}  // namespace eddy::cpu
