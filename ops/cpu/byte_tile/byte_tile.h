// ByteTileKernels: exact products of 8-bit integers in register tiles, one set for each
// instruction set.
//
//   C[i][j] = row_start[i] - a_zero[i] * column_sums[j] + sum over k of A[i][k] * B[k][j]
//
// A is unsigned, B signed, sums wrap at 32 bits. No step saturates: AVX-512 VNNI adds four
// products into 32 bits at once; without it, bytes are widened to 16 bits and added in pairs,
// which cannot overflow. (AVX2's own byte product saturates at 255 * 127 * 2 and is not used.)
//
// Operands are prepared: `group` values of k lie together, in `element_bytes` each, padded with
// zeros to whole groups; B in panels of panel_width() columns, a panel's groups one after another.
// Where there are matrix registers (AMX), they take many rows by such a panel at once.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eddy::cpu {

inline constexpr int kMaxByteTileRows = 6;
inline constexpr int kMaxByteTileVectors = 4;

struct ByteTileArgs {
  const void* a = nullptr;
  int64_t a_row_bytes = 0;
  const void* b = nullptr;  // a panel
  int64_t num_groups = 0;
  const int32_t* column_sums = nullptr;  // of B's panel
  const int32_t* a_zero = nullptr;       // per row
  const int32_t* row_start = nullptr;    // per row
  int32_t* c = nullptr;
  int64_t c_row = 0;
  int columns = 0;  // in (width * (vectors - 1), width * vectors]
};

enum class ByteIsa : uint8_t { kBaseline, kAvx2, kAvx512Vnni, kAmx };

struct ByteTileKernels {
  using Tile = void (*)(const ByteTileArgs&);
  using Rows = void (*)(const ByteTileArgs&, int64_t rows);

  ByteIsa isa;
  const char* name;
  int width;                                         // columns in a vector
  int max_rows;                                      // of a tile
  int max_vectors;                                   // of a tile
  int group;                                         // values of k that lie together: 4 or 2
  int element_bytes;                                 // of a prepared value: 1 or 2
  Tile tile[kMaxByteTileRows][kMaxByteTileVectors];  // [rows - 1][vectors - 1]
  Rows rows_or_null = nullptr;  // any number of rows, faster than tiles from min_rows on
  int64_t min_rows = 0;

  int panel_width() const { return width * max_vectors; }
  int64_t num_groups(int64_t depth) const { return (depth + group - 1) / group; }
};

// The set for one instruction set, or null where this processor lacks it.
const ByteTileKernels* byte_tile_kernels_or_null(ByteIsa isa);
// The best set for this processor.
const ByteTileKernels& byte_tile_kernels();

}  // namespace eddy::cpu
