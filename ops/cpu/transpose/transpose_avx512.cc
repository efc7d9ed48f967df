#include "ops/cpu/transpose/transpose_avx512.h"

#include <immintrin.h>

namespace eddy::cpu {
namespace {

// A block is a vector of each of its lines: a whole cache line where they are aligned.
constexpr int kBlock = 16;

using Words = uint32_t __attribute__((vector_size(64)));
using Pairs = uint64_t __attribute__((vector_size(64)));

// Of 4 x 4 words in each quarter of the vectors, rows become columns.
void transpose_quarters(const Words* rows, Pairs* columns) {
  const auto low = [](Words a, Words b) {
    return reinterpret_cast<Pairs>(
        __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29));
  };
  const auto high = [](Words a, Words b) {
    return reinterpret_cast<Pairs>(
        __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31));
  };
  const Pairs low01 = low(rows[0], rows[1]), low23 = low(rows[2], rows[3]);
  const Pairs high01 = high(rows[0], rows[1]), high23 = high(rows[2], rows[3]);
  columns[0] = __builtin_shufflevector(low01, low23, 0, 8, 2, 10, 4, 12, 6, 14);
  columns[1] = __builtin_shufflevector(low01, low23, 1, 9, 3, 11, 5, 13, 7, 15);
  columns[2] = __builtin_shufflevector(high01, high23, 0, 8, 2, 10, 4, 12, 6, 14);
  columns[3] = __builtin_shufflevector(high01, high23, 1, 9, 3, 11, 5, 13, 7, 15);
}

// Quarter s of row j, of row j + 4, of row j + 8 and of row j + 12, as one vector: put together by
// masked loads, of which the processor makes more at a time than exchanges of quarters between
// vectors, or insertions.
Words load_quarters(const uint32_t* in, int64_t stride) {
  const auto quarter = [&](int64_t row) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + row * stride));
  };
  __m512i four = _mm512_castsi128_si512(quarter(0));
  four = _mm512_mask_broadcast_i32x4(four, 0x00f0, quarter(4));
  four = _mm512_mask_broadcast_i32x4(four, 0x0f00, quarter(8));
  return reinterpret_cast<Words>(_mm512_mask_broadcast_i32x4(four, 0xf000, quarter(12)));
}

// Whole blocks, or with `rows` and `columns` of at most 16.
template <bool IsWhole>
void transpose_block(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride,
                     int rows, int columns) {
  const auto first = [](int count) { return static_cast<__mmask16>((1u << count) - 1); };
  alignas(64) uint32_t lines[kBlock * kBlock];
  if constexpr (!IsWhole) {
    for (int b = 0; b < kBlock; ++b) {
      const __m512i line = b < columns ? _mm512_maskz_loadu_epi32(first(rows), in + b * in_stride)
                                       : _mm512_setzero_si512();
      _mm512_store_si512(lines + b * kBlock, line);
    }
    in = lines;
    in_stride = kBlock;
  }
  for (int s = 0; s < 4; ++s) {
    Words quarters[4];
    for (int j = 0; j < 4; ++j) quarters[j] = load_quarters(in + j * in_stride + 4 * s, in_stride);
    Pairs results[4];
    transpose_quarters(quarters, results);
    for (int i = 0; i < 4; ++i) {
      uint32_t* const to = out + (4 * s + i) * out_stride;
      const auto result = reinterpret_cast<__m512i>(results[i]);
      if constexpr (IsWhole) {
        _mm512_storeu_si512(to, result);
      } else if (4 * s + i < rows) {
        _mm512_mask_storeu_epi32(to, first(columns), result);
      }
    }
  }
}

int block_size(int64_t left) { return left < kBlock ? static_cast<int>(left) : kBlock; }

}  // namespace

void transpose_words_avx512(const uint32_t* in, int64_t in_stride, uint32_t* out,
                            int64_t out_stride, int64_t rows, int64_t columns) {
  const auto block_at = [&](int64_t a, int64_t b) {
    const int height = block_size(rows - a), width = block_size(columns - b);
    const auto block =
        height == kBlock && width == kBlock ? transpose_block<true> : transpose_block<false>;
    block(in + a + b * in_stride, in_stride, out + a * out_stride + b, out_stride, height, width);
  };
  // Lines of the side with the larger stride are gone through to their ends.
  if (out_stride > in_stride) {
    for (int64_t b = 0; b < columns; b += kBlock) {
      for (int64_t a = 0; a < rows; a += kBlock) block_at(a, b);
    }
  } else {
    for (int64_t a = 0; a < rows; a += kBlock) {
      for (int64_t b = 0; b < columns; b += kBlock) block_at(a, b);
    }
  }
}

}  // namespace eddy::cpu
