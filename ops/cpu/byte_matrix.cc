#include "ops/cpu/byte_matrix.h"

#include <tmmintrin.h>

#include <algorithm>
#include <cstring>

#include "graph/base/check.h"

namespace eddy::cpu {
namespace {

int64_t whole_panels(int64_t n, const ByteTileKernels& tiles) {
  return (n + tiles.panel_width() - 1) / tiles.panel_width();
}

// One group of B's rows, in words of four bytes as the tiles read them. `flip` shifts unsigned
// values down by 128; rows that are missing in the last group are zeros.
template <typename Element>
void pack_group(const uint8_t* b, int64_t b_row, int64_t num_rows, int64_t columns, uint8_t flip,
                char* to, int32_t* column_sums) {
  constexpr int64_t kGroup = 4 / sizeof(Element);
  static_assert(kGroup * sizeof(Element) == 4, "a group is one word");
  const auto pack = [&](int64_t rows) {
    for (int64_t j = 0; j < columns; ++j) {
      Element word[kGroup] = {};
      int32_t sum = 0;
      for (int64_t t = 0; t < rows; ++t) {
        const auto value = static_cast<int8_t>(b[t * b_row + j] ^ flip);
        word[t] = value;
        sum += value;
      }
      std::memcpy(to + j * 4, word, sizeof word);
      column_sums[j] += sum;
    }
  };
  // With a compile-time constant the inner loop is unrolled.
  num_rows >= kGroup ? pack(kGroup) : pack(num_rows);
}

// The same for a whole group of four rows of bytes, sixteen columns at a time.
void pack_four_rows(const uint8_t* b, int64_t b_row, int64_t columns, uint8_t flip, char* to,
                    int32_t* column_sums) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  const __m128i one_bytes = _mm_set1_epi8(1), one_words = _mm_set1_epi16(1);
  const auto row = [&](int64_t t, int64_t j) {
    const auto* at = reinterpret_cast<const __m128i*>(b + t * b_row + j);
    return _mm_xor_si128(_mm_loadu_si128(at), flips);
  };
  const int64_t whole_columns = columns & ~int64_t{15};
  for (int64_t j = 0; j < whole_columns; j += 16) {
    const __m128i low01 = _mm_unpacklo_epi8(row(0, j), row(1, j));
    const __m128i low23 = _mm_unpacklo_epi8(row(2, j), row(3, j));
    const __m128i high01 = _mm_unpackhi_epi8(row(0, j), row(1, j));
    const __m128i high23 = _mm_unpackhi_epi8(row(2, j), row(3, j));
    const __m128i words[4] = {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
                              _mm_unpacklo_epi16(high01, high23),
                              _mm_unpackhi_epi16(high01, high23)};
    for (int q = 0; q < 4; ++q) {
      auto* const sums = reinterpret_cast<__m128i*>(column_sums + j + 4 * q);
      const __m128i pairs = _mm_maddubs_epi16(one_bytes, words[q]);
      const __m128i fours = _mm_madd_epi16(pairs, one_words);
      _mm_storeu_si128(sums, _mm_add_epi32(_mm_loadu_si128(sums), fours));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 4 * j + 16 * q), words[q]);
    }
  }
  pack_group<int8_t>(b + whole_columns, b_row, 4, columns - whole_columns, flip,
                     to + 4 * whole_columns, column_sums + whole_columns);
}

// Of values that are shifted as `flip` says.
uint32_t sum_of(const uint8_t* values, int64_t count, uint8_t flip) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  __m128i sums = _mm_setzero_si128();  // two
  int64_t k = 0;
  for (; k + 16 <= count; k += 16) {
    const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + k));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_xor_si128(some, flips), _mm_setzero_si128()));
  }
  const __m128i sum = _mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums));
  auto total = static_cast<uint32_t>(_mm_cvtsi128_si32(sum));
  for (; k < count; ++k) total += values[k] ^ flip;
  return total;
}

}  // namespace

size_t ByteMatrix::size_bytes(int64_t k, int64_t n, const ByteTileKernels& tiles) {
  const int64_t columns = whole_panels(n, tiles) * tiles.panel_width();
  return static_cast<size_t>(columns * (4 + tiles.num_groups(k) * 4)) + 4;
}

ByteMatrix::ByteMatrix(int64_t k, int64_t n, bool is_signed, void* memory,
                       const ByteTileKernels& tiles)
    : tiles_(&tiles), k_(k), n_(n), is_signed_(is_signed) {
  EDDY_DCHECK(reinterpret_cast<uintptr_t>(memory) % alignof(int32_t) == 0)
      << "sums are not aligned";
  column_sums_ = static_cast<int32_t*>(memory);
  panels_ = static_cast<char*>(memory) + num_panels() * tiles.panel_width() * 4;
}

int64_t ByteMatrix::num_panels() const { return whole_panels(n_, *tiles_); }

ByteMatrix ByteMatrix::pack(const void* b, bool is_signed, int64_t k, int64_t n, void* memory,
                            const ByteTileKernels& tiles) {
  ByteMatrix matrix(k, n, is_signed, memory, tiles);
  matrix.fill(b);
  return matrix;
}

ByteMatrix ByteMatrix::packed(bool is_signed, int64_t k, int64_t n, const void* memory,
                              const ByteTileKernels& tiles) {
  return ByteMatrix(k, n, is_signed, const_cast<void*>(memory), tiles);
}

bool ByteMatrix::may_be_packed(int64_t k, int64_t n, const void* memory,
                               const ByteTileKernels& tiles) {
  const int64_t most = 128 * k;
  const auto* sums = static_cast<const int32_t*>(memory);
  const int64_t count = whole_panels(n, tiles) * tiles.panel_width();
  return std::all_of(sums, sums + count,
                     [most](int32_t sum) { return -most <= sum && sum <= most; });
}

void ByteMatrix::fill(const void* b) {
  const int64_t width = tiles_->panel_width(), group = tiles_->group;
  const uint8_t flip = is_signed_ ? 0 : 0x80;
  const bool packs_bytes = tiles_->element_bytes == 1;
  const auto pack = packs_bytes ? pack_group<int8_t> : pack_group<int16_t>;
  std::memset(column_sums_, 0, static_cast<size_t>(num_panels() * width) * sizeof(int32_t));
  for (int64_t panel = 0; panel < num_panels(); ++panel) {
    const int64_t first = panel * width, columns = std::min(width, n_ - first);
    char* to = panels_ + panel * panel_bytes();
    for (int64_t k = 0; k < k_; k += group, to += width * 4) {
      const auto* rows = static_cast<const uint8_t*>(b) + k * n_ + first;
      if (packs_bytes && k + 4 <= k_) {
        pack_four_rows(rows, n_, columns, flip, to, column_sums_ + first);
      } else {
        pack(rows, n_, k_ - k, columns, flip, to, column_sums_ + first);
      }
      std::memset(to + columns * 4, 0, static_cast<size_t>((width - columns) * 4));
    }
  }
}

// Rows as the tiles read them, after the per-row numbers.
size_t ByteMatrix::scratch_bytes(int64_t m) const {
  return static_cast<size_t>(m * (row_bytes() + 3 * 4)) + 64;
}

// Row i of A as unsigned values, padded with zeros to whole groups.
void ByteMatrix::prepare_row(const Product& product, int64_t i, void* to) const {
  const auto* from = static_cast<const uint8_t*>(product.a) + i * k_;
  const uint8_t flip = product.a_is_signed ? 0x80 : 0;  // shifts signed values up by 128
  std::memset(static_cast<char*>(to) + std::max<int64_t>(row_bytes() - 4, 0), 0,
              static_cast<size_t>(std::min<int64_t>(row_bytes(), 4)));
  if (tiles_->element_bytes == 1) {
    auto* bytes = static_cast<uint8_t*>(to);
    if (flip == 0) {
      std::copy(from, from + k_, bytes);
    } else {
      for (int64_t k = 0; k < k_; ++k) bytes[k] = from[k] ^ flip;
    }
    return;
  }
  auto* words = static_cast<int16_t*>(to);
  for (int64_t k = 0; k < k_; ++k) words[k] = static_cast<int16_t>(from[k] ^ flip);
}

void ByteMatrix::multiply_panel(const Product& product, int64_t panel, const void* a,
                                int64_t a_row_bytes, const int32_t* a_zero,
                                const int32_t* row_start) const {
  EDDY_DCHECK(panel >= 0 && panel < num_panels()) << "panel " << panel << " of " << num_panels();
  const int64_t first = panel * tiles_->panel_width();
  ByteTileArgs t;
  t.a_row_bytes = a_row_bytes;
  t.b = panels_ + panel * panel_bytes();
  t.num_groups = tiles_->num_groups(k_);
  t.column_sums = column_sums_ + first;
  t.c_row = n_;
  t.columns = static_cast<int>(std::min<int64_t>(tiles_->panel_width(), n_ - first));
  if (tiles_->rows_or_null && product.m >= tiles_->min_rows) {
    t.a = a;
    t.a_zero = a_zero;
    t.row_start = row_start;
    t.c = product.c + first;
    return tiles_->rows_or_null(t, product.m);
  }
  const int vectors = (t.columns + tiles_->width - 1) / tiles_->width;
  for (int64_t i = 0; i < product.m; i += tiles_->max_rows) {
    const int rows = static_cast<int>(std::min<int64_t>(tiles_->max_rows, product.m - i));
    t.a = static_cast<const char*>(a) + i * a_row_bytes;
    t.a_zero = a_zero + i;
    t.row_start = row_start + i;
    t.c = product.c + i * n_ + first;
    tiles_->tile[rows - 1][vectors - 1](t);
  }
}

// C -= b_zero[j] * (sum of A's row - k * a_zero): all in wrapping arithmetic.
void ByteMatrix::subtract_column_zeros(const Product& product, const int32_t* row_sums,
                                       const int32_t* a_zero) const {
  const int32_t shift = is_signed_ ? 0 : 128;
  const int64_t first = product.first_panel * panel_width();
  const int64_t end = std::min(std::min(product.end_panel, num_panels()) * panel_width(), n_);
  for (int64_t i = 0; i < product.m; ++i) {
    const uint32_t excess = static_cast<uint32_t>(row_sums[i]) -
                            static_cast<uint32_t>(k_) * static_cast<uint32_t>(a_zero[i]);
    for (int64_t j = first; j < end; ++j) {
      int32_t& c = product.c[i * n_ + j];
      const uint32_t zero = static_cast<uint32_t>(product.b_zero.at(j) - shift);
      c = static_cast<int32_t>(static_cast<uint32_t>(c) - zero * excess);
    }
  }
}

void ByteMatrix::multiply(const Product& product) const {
  const int64_t m = product.m;
  EDDY_DCHECK(reinterpret_cast<uintptr_t>(product.scratch) % alignof(int32_t) == 0)
      << "scratch is not aligned";
  auto* a_zero = static_cast<int32_t*>(product.scratch);
  int32_t *row_start = a_zero + m, *row_sums = a_zero + 2 * m;
  char* rows = reinterpret_cast<char*>(a_zero + 3 * m);
  const bool reads_in_place = !product.a_is_signed && tiles_->element_bytes == 1 && k_ % 4 == 0;
  // With one zero point for B, its share is one number for each row.
  const bool has_columns = product.b_zero.count > 1;
  const int32_t shift = is_signed_ ? 0 : 128;
  const int32_t b_zero = has_columns ? 0 : product.b_zero.at(0) - shift;
  for (int64_t i = 0; i < m; ++i) {
    a_zero[i] = product.a_zero.at(i) + (product.a_is_signed ? 128 : 0);
    if (!reads_in_place) prepare_row(product, i, rows + i * row_bytes());
    row_sums[i] = 0;
    row_start[i] = 0;
    if (b_zero == 0 && !has_columns) continue;
    const auto* a = static_cast<const uint8_t*>(product.a) + i * k_;
    const uint8_t flip = product.a_is_signed ? 0x80 : 0;
    const uint32_t sum = sum_of(a, k_, flip);
    row_sums[i] = static_cast<int32_t>(sum);
    const uint32_t excess = sum - static_cast<uint32_t>(k_) * static_cast<uint32_t>(a_zero[i]);
    row_start[i] = static_cast<int32_t>(-static_cast<uint32_t>(b_zero) * excess);
  }
  const void* a = reads_in_place ? product.a : rows;
  const int64_t a_row_bytes = reads_in_place ? k_ : row_bytes();
  for (int64_t p = product.first_panel; p < std::min(product.end_panel, num_panels()); ++p) {
    multiply_panel(product, p, a, a_row_bytes, a_zero, row_start);
  }
  if (has_columns) subtract_column_zeros(product, row_sums, a_zero);
}

}  // namespace eddy::cpu
