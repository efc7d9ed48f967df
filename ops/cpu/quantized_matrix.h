// QuantizedMatrix: an 8-bit matrix B with scales, packed once, for float products.
//
//   C[i][j] = sum over k of A[i][k] * ((B[k][j] - zero[j]) * scale[j])
//
// B stays in bytes, a quarter of what floats take; a block of a panel becomes floats just before
// the register tiles read it from the cache. With one row of A, memory is the limit, so this is
// faster than floats; with many rows it costs some 10 % more.
//
// Determinism: the order of every sum depends on m, k, n and the instruction set.
//
// Contract: scale and zero point are one value, or one for each column.
// Ownership: copies scales and zero points, and B where it is not given packed. Threads: const use
// from any number, each with scratch of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/contract/packed_constants.h"
#include "ops/cpu/loops/loops.h"
#include "ops/cpu/tile/tile.h"

namespace eddy::cpu {

class QuantizedMatrix {
 public:
  struct Source {
    const void* b = nullptr;  // [k][n]
    bool is_signed = false;
    int64_t k = 0, n = 0;
    const float* scale = nullptr;
    const void* zero_or_null = nullptr;  // as signed as B
    bool has_columns = false;            // a scale and a zero point for each column
  };
  explicit QuantizedMatrix(const Source& source, const TileKernels& tiles = tile_kernels(),
                           const LoopSet& loops = loop_set());
  // Over what fill() has packed of such a B. Any content is a matrix.
  QuantizedMatrix(const Source& source, PackedMemory panels,
                  const TileKernels& tiles = tile_kernels(), const LoopSet& loops = loop_set());
  static size_t size_bytes(int64_t k, int64_t n, const TileKernels& tiles = tile_kernels());
  static void fill(const Source& source, std::byte* panels,
                   const TileKernels& tiles = tile_kernels());

  int64_t depth() const { return k_; }
  int64_t columns() const { return n_; }

  size_t scratch_bytes(int64_t m) const;
  // c[m][n] = a[m][k] * B; `scratch` aligned to 64.
  void multiply(int64_t m, const float* a, float* c, void* scratch) const;

 private:
  int64_t num_panels() const { return (n_ + tiles_.panel_width() - 1) / tiles_.panel_width(); }
  int64_t block_rows(int64_t m) const;
  void dequantize(int64_t panel, int64_t first, int64_t rows, float* to) const;
  void multiply_block(int64_t m, const float* a, float* c, int64_t panel, int64_t first,
                      int64_t rows, const float* block) const;

  const TileKernels& tiles_;
  const QuantizeLoops loops_;
  const int64_t k_, n_;
  const bool has_columns_;
  const PackedMemory panels_;   // [num_panels][k][panel width], columns beyond n are 0
  std::vector<float> scales_;   // one, or whole panels
  std::vector<uint8_t> zeros_;  // likewise; empty: 0
};

}  // namespace eddy::cpu
