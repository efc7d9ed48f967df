// ByteMatrix: an 8-bit matrix B prepared once for exact products with 8-bit rows.
//
//   C[i][j] = sum over k of (A[i][k] - a_zero[i]) * (B[k][j] - b_zero[j])
//
// Either operand may be signed or unsigned: A is shifted to unsigned and B to signed, zero points
// along with them, which changes no difference.
//
// Ownership: the packed bytes are the caller's memory (constant weights: kept by the kernel; else
// scratch of the call). Threads: const use from any number.
#pragma once

#include "graph/base/check.h"
#include "ops/cpu/byte_tile/byte_tile.h"

namespace eddy::cpu {

// Zero points: none (all 0), one, or one for each row of A or column of B.
struct ZeroPoints {
  const void* values = nullptr;
  bool is_signed = false;
  int64_t count = 0;

  int32_t at(int64_t i) const {
    if (count == 0) return 0;
    const int64_t place = count == 1 ? 0 : i;
    EDDY_DCHECK(place >= 0 && place < count) << "zero point " << place << " of " << count;
    return is_signed ? static_cast<const int8_t*>(values)[place]
                     : static_cast<const uint8_t*>(values)[place];
  }
};

class ByteMatrix {
 public:
  // Bytes of memory that pack() fills; aligned to 4 at least.
  static size_t size_bytes(int64_t k, int64_t n, const ByteTileKernels& tiles);

  // Packs B[k][n], row-major, into `memory`.
  static ByteMatrix pack(const void* b, bool is_signed, int64_t k, int64_t n, void* memory,
                         const ByteTileKernels& tiles = byte_tile_kernels());

  // Over memory that pack() has filled, which is only read.
  static ByteMatrix packed(bool is_signed, int64_t k, int64_t n, const void* memory,
                           const ByteTileKernels& tiles = byte_tile_kernels());
  // Whether bytes of an untrusted file may stand for such memory: sums that rows of k bytes have.
  static bool may_be_packed(int64_t k, int64_t n, const void* memory,
                            const ByteTileKernels& tiles = byte_tile_kernels());

  struct Product {
    int64_t m = 0;
    const void* a = nullptr;  // [m][k]
    bool a_is_signed = false;
    ZeroPoints a_zero = {}, b_zero = {};
    int32_t* c = nullptr;     // [m][n]
    void* scratch = nullptr;  // scratch_bytes(m)
    // Of these panels' columns only.
    int64_t first_panel = 0, end_panel = INT64_MAX;
  };
  size_t scratch_bytes(int64_t m) const;
  void multiply(const Product& product) const;

  int64_t depth() const { return k_; }
  int64_t columns() const { return n_; }
  int64_t panel_width() const { return tiles_->panel_width(); }

 private:
  ByteMatrix(int64_t k, int64_t n, bool is_signed, void* memory, const ByteTileKernels& tiles);
  int64_t row_bytes() const { return tiles_->num_groups(k_) * 4; }
  int64_t panel_bytes() const { return row_bytes() * tiles_->panel_width(); }
  int64_t num_panels() const;
  void fill(const void* b);
  void prepare_row(const Product& product, int64_t i, void* to) const;
  void multiply_panel(const Product& product, int64_t panel, const void* a, int64_t a_row_bytes,
                      const int32_t* a_zero, const int32_t* row_start) const;
  void subtract_column_zeros(const Product& product, const int32_t* row_sums,
                             const int32_t* a_zero) const;

  const ByteTileKernels* tiles_;
  int64_t k_, n_;
  bool is_signed_;
  int32_t* column_sums_;  // of the shifted B, for whole panels
  char* panels_;
};

}  // namespace eddy::cpu
