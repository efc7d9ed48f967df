// Rows by a panel in the matrix registers of AMX: 32 rows by 32 columns in four sums, 64 values of
// k at a time; what is left of the rows 16 at a time. A panel as AVX-512 VNNI reads it is such
// registers' B already: a group of four values of k of all columns is a row of it.
//
// What is left of k beside whole registers is padded with zeros: of B in a copy, of A in a copy
// where the next bytes are not A's own (its last rows).
// Source: Intel, "Intel Architecture Instruction Set Extensions Programming Reference", chapter 3.
#if !defined(__clang__)
// gcc 12 takes its own header's "undefined" vectors for reads of uninitialized variables.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "ops/cpu/byte_tile/byte_tile_sets.h"

namespace eddy::cpu {
namespace {

constexpr int kRows = 16, kLanes = 16;    // of a register of sums
constexpr int kGroups = 16;               // of four values of k: a register's rows of B
constexpr int kDepthBytes = 4 * kGroups;  // a register's row of A
constexpr int kPanelRow = 4 * kLanes * kMaxByteTileVectors;  // bytes of a group of all columns

// Registers: 0 and 1 sums of the first 16 rows, 2 and 3 of the next; 4 and 5 A; 6 and 7 B.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Registers are read and written behind the compiler's back.
void finish_writes() { __asm__ volatile("" : : : "memory"); }

void configure(int rows) {
  Configuration all;
  for (int i = 0; i < 8; ++i) {
    all.row_bytes[i] = 64;
    all.rows[i] = static_cast<uint8_t>(i < 6 ? rows : kGroups);
  }
  finish_writes();
  _tile_loadconfig(&all);
}

// kBlocks of 16 rows by kVectors of 16 columns.
template <int kBlocks, int kVectors>
[[gnu::always_inline]] inline void add_products(const uint8_t* a, int64_t a_row, const char* b) {
  _tile_loadd(4, a, a_row);
  _tile_loadd(6, b, kPanelRow);
  _tile_dpbusd(0, 4, 6);
  if constexpr (kVectors > 1) {
    _tile_loadd(7, b + 4 * kLanes, kPanelRow);
    _tile_dpbusd(1, 4, 7);
  }
  if constexpr (kBlocks > 1) {
    _tile_loadd(5, a + kRows * a_row, a_row);
    _tile_dpbusd(2, 5, 6);
    if constexpr (kVectors > 1) _tile_dpbusd(3, 5, 7);
  }
}

// What sums begin with is added at last; columns beyond the panel's are not written.
struct Rest {
  const ByteTileArgs& t;
  int64_t column;  // the first

  template <int kVectors>
  [[gnu::always_inline]] void write(const int32_t (&sums)[kRows][2][kLanes], int64_t first,
                                    int rows) const {
    for (int j = 0; j < kVectors; ++j) {
      const int64_t at = column + j * kLanes;
      const int64_t left = t.columns - at;
      const auto valid = static_cast<__mmask16>(left < kLanes ? (1u << left) - 1u : 0xffffu);
      const __m512i columns = _mm512_maskz_loadu_epi32(valid, t.column_sums + at);
      int32_t zero = t.a_zero[first];
      __m512i share = _mm512_mullo_epi32(_mm512_set1_epi32(zero), columns);
      for (int i = 0; i < rows; ++i) {
        if (t.a_zero[first + i] != zero) {
          zero = t.a_zero[first + i];
          share = _mm512_mullo_epi32(_mm512_set1_epi32(zero), columns);
        }
        const __m512i start = _mm512_sub_epi32(_mm512_set1_epi32(t.row_start[first + i]), share);
        const __m512i sum = _mm512_add_epi32(_mm512_load_si512(sums[i][j]), start);
        _mm512_mask_storeu_epi32(t.c + (first + i) * t.c_row + at, valid, sum);
      }
    }
  }
};

// What is left of k.
struct Padded {
  alignas(64) char b[kGroups * kPanelRow];
  alignas(64) uint8_t a[2 * kRows * kDepthBytes];
};

// `count` rows, 16 for each of two blocks.
template <int kBlocks, int kVectors>
void multiply_block(const ByteTileArgs& t, int64_t column, int64_t first, int count,
                    const Padded* padded_or_null, bool has_padded_a) {
  const int64_t whole = t.num_groups / kGroups;
  const auto* const a = static_cast<const uint8_t*>(t.a) + first * t.a_row_bytes;
  const auto* const b = static_cast<const char*>(t.b) + 4 * column;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = 0; k < whole; ++k) {
    add_products<kBlocks, kVectors>(a + k * kDepthBytes, t.a_row_bytes,
                                    b + k * kGroups * kPanelRow);
  }
  if (padded_or_null != nullptr) {
    const char* const b_rest = padded_or_null->b + 4 * column;
    if (has_padded_a) {
      add_products<kBlocks, kVectors>(padded_or_null->a, kDepthBytes, b_rest);
    } else {
      add_products<kBlocks, kVectors>(a + whole * kDepthBytes, t.a_row_bytes, b_rest);
    }
  }
  alignas(64) int32_t sums[2][kRows][2][kLanes];
  constexpr int64_t kRow = sizeof(sums[0][0]);
  _tile_stored(0, sums[0][0][0], kRow);
  if constexpr (kVectors > 1) _tile_stored(1, sums[0][0][1], kRow);
  if constexpr (kBlocks > 1) _tile_stored(2, sums[1][0][0], kRow);
  if constexpr (kBlocks > 1 && kVectors > 1) _tile_stored(3, sums[1][0][1], kRow);
  finish_writes();
  const Rest rest = {t, column};
  rest.write<kVectors>(sums[0], first, count);
  if constexpr (kBlocks > 1) rest.write<kVectors>(sums[1], first + kRows, count);
}

void pad_b(const ByteTileArgs& t, int64_t rest, Padded& padded) {
  const char* const from =
      static_cast<const char*>(t.b) + (t.num_groups - rest) * int64_t{kPanelRow};
  for (int64_t at = 0; at < kGroups * kPanelRow; at += 64) {
    const bool is_there = at < rest * kPanelRow;
    _mm512_store_si512(padded.b + at,
                       is_there ? _mm512_loadu_si512(from + at) : _mm512_setzero_si512());
  }
}

void pad_a(const ByteTileArgs& t, int64_t rest, int64_t first, int64_t rows, Padded& padded) {
  const auto valid = (uint64_t{1} << (4 * rest)) - 1;
  const auto* from =
      static_cast<const uint8_t*>(t.a) + first * t.a_row_bytes + (t.num_groups - rest) * 4;
  for (int64_t i = 0; i < rows; ++i, from += t.a_row_bytes) {
    _mm512_store_si512(padded.a + i * kDepthBytes, _mm512_maskz_loadu_epi8(valid, from));
  }
}

}  // namespace

void multiply_rows_amx(const ByteTileArgs& t, int64_t rows) {
  const int64_t rest = t.num_groups % kGroups;
  Padded padded;
  if (rest > 0) pad_b(t, rest, padded);
  int configured = 0;
  for (int64_t first = 0; first < rows;) {
    const int64_t left = rows - first;
    const bool is_pair = left >= 2 * kRows;
    const int count = left < kRows ? static_cast<int>(left) : kRows;
    const int64_t taken = is_pair ? 2 * kRows : count;
    if (count != configured) configure(configured = count);
    // The last register of a row reads what follows it.
    const bool pads_a = rest > 0 && (left - taken) * t.a_row_bytes < kDepthBytes - 4 * rest;
    if (pads_a) pad_a(t, rest, first, taken, padded);
    finish_writes();
    const Padded* const padded_or_null = rest > 0 ? &padded : nullptr;
    for (int64_t column = 0; column < t.columns; column += 2 * kLanes) {
      const bool is_wide = t.columns - column > kLanes;
      const auto multiply = is_pair   ? is_wide ? multiply_block<2, 2> : multiply_block<2, 1>
                              : is_wide ? multiply_block<1, 2>
                                      : multiply_block<1, 1>;
      multiply(t, column, first, count, padded_or_null, pads_a);
    }
    first += taken;
  }
  _tile_release();
}

}  // namespace eddy::cpu
