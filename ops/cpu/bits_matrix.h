// BitsMatrix: a matrix B of 2-, 4- or 8-bit weights in blocks along its rows, packed once, for
// float products (MatMulNBits, DequantizeMatMul).
//
//   C[i][j] = bias[j] + sum over k of A[i][k] * ((B[k][j] - zero[k / block][j]) * scale[k /
//   block][j])
//
// B stays as small as it is: a byte holds 8 / bits rows of a column, the first in its lowest bits.
// With up to kMaxProductRows rows of A, where memory is the limit, weights are multiplied as soon
// as they are floats; with more, some rows of a panel become floats just before the register tiles
// read them from the cache.
//
// Determinism: the order of every sum depends on m, k, the panel and the instruction set, so panels
// may be multiplied in any order by any thread.
//
// Ownership: copies scales and zero points, and packs B, for itself or with other kernels. Threads:
// const use from any number, each with scratch of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/contract/kernel.h"
#include "ops/cpu/tile/tile.h"
#include "ops/cpu/unpack/unpack.h"

namespace eddy::cpu {

class BitsMatrix {
 public:
  struct Source {
    const uint8_t* b = nullptr;
    int64_t row_step = 1,
            column_step = 0;  // bytes to the next byte of a column, to the next column
    uint8_t flip = 0;         // of each byte these bits: 0x80 of signed ones
    int64_t k = 0, n = 0, block = 0;
    int bits = 0;  // 2, 4 or 8
    // Of each block of a column, column by column.
    std::vector<float> scales = {};
    std::vector<uint8_t> zeros = {};
  };
  // `init_or_null`: of the kernel that is being bound, with which the packed B, which may be any
  // bytes, is shared.
  explicit BitsMatrix(const Source& source, const TileKernels& tiles = tile_kernels(),
                      const KernelInit* init_or_null = nullptr);

  int64_t depth() const { return k_; }
  int64_t columns() const { return n_; }
  int64_t panel_width() const { return tiles_.panel_width(); }
  int64_t num_panels() const { return (n_ + panel_width() - 1) / panel_width(); }
  // Of a panel.
  int64_t columns_of(int64_t panel) const;

  size_t scratch_bytes(int64_t m) const;
  // The panel's columns of c = a[m][k] * B + bias, c's rows `c_row` apart; `scratch` aligned to 64.
  void multiply(int64_t m, const float* a, int64_t panel, const float* bias_or_null, float* c,
                int64_t c_row, void* scratch) const;

 private:
  int64_t rows_each() const { return 8 / bits_; }
  int64_t packed_rows() const { return (k_ + rows_each() - 1) / rows_each(); }
  int64_t num_blocks() const { return (k_ + block_ - 1) / block_; }
  int64_t strip_rows(int64_t m) const;
  const uint8_t* packed() const { return reinterpret_cast<const uint8_t*>(packed_.get()); }
  void fill(const Source& source, uint8_t* to) const;
  void dequantize(int64_t panel, int64_t first, int64_t rows, float* to) const;
  void multiply_unpacked(int64_t m, const float* a, int64_t panel, const float* bias_or_null,
                         float* c, int64_t c_row, float* sums) const;
  void multiply_strip(int64_t m, const float* a, float* c, int64_t c_row, int64_t first,
                      int64_t rows, int64_t columns, const float* strip,
                      const float* bias_or_null) const;

  const TileKernels& tiles_;
  const UnpackLoops::OfBits& loops_;
  const int64_t k_, n_, block_;
  const int bits_;
  PackedMemory packed_;         // panels: [num_panels][packed_rows][panel width], 0 beyond n
  std::vector<float> scales_;   // [num_panels][num_blocks][panel width], 0 beyond n
  std::vector<uint8_t> zeros_;  // likewise
};

}  // namespace eddy::cpu
