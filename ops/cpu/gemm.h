// gemm and PackedMatrix: float products of any size for the kernels of this folder.
//
//   C[m][n] = (C if accumulate) + bias[n] + A[m][k] * B[k][n], row-major.
//
// Small products run in register tiles (ops/cpu/tile), larger ones in oneDNN; a constant B is
// packed once into panels that the tiles read in order. All sizes may be 0: with k = 0 the
// product is zero.
//
// Determinism: the way and the order of every sum depend on m, n, k, on which operands are given
// and transposed, and on the instruction set, not on where they lie; but for n = 1 on whether the
// elements of the columns of B and C are neighbours.
// Threads: one call runs on its own thread; a PackedMatrix may be used by any number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "graph/base/check.h"
#include "ops/contract/kernel.h"
#include "ops/cpu/product_tiles.h"
#include "ops/cpu/tile/tile.h"

namespace eddy::cpu {

struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t a_row = 0;
  bool transpose_a = false;  // A is stored [k][m]
  const float* b = nullptr;
  int64_t b_row = 0;
  bool transpose_b = false;  // B is stored [n][k]
  float* c = nullptr;
  int64_t c_row = 0;
  const float* bias_or_null = nullptr;
  bool accumulate = false;
};

void gemm(const GemmArgs& args);

// Whether gemm() takes the register tiles for operands that are not transposed. Their sums have one
// order, wherever operands lie.
bool is_for_tiles(int64_t m, int64_t n, int64_t k);
// These products, of at least one k; with a transposed B, by panels of it that are turned over into
// memory of k * panel_width() floats, aligned to 64.
void gemm_by_tiles(const GemmArgs& args, float* turned_or_null);

class PackedMatrix {
 public:
  // Of a matrix B[k][n] whose element (i, j) is b[i * row_step + j * column_step].
  struct Source {
    const float* b = nullptr;
    int64_t k = 0, n = 0;
    int64_t row_step = 0, column_step = 0;
  };
  // Copies it.
  PackedMatrix(const float* b, int64_t k, int64_t n, int64_t row_step, int64_t column_step,
               const TileKernels& tiles = tile_kernels());
  // Over what fill() has packed of such a matrix, aligned to 64. Any content is a matrix.
  PackedMatrix(int64_t k, int64_t n, PackedMemory panels,
               const TileKernels& tiles = tile_kernels());
  static size_t size_bytes(int64_t k, int64_t n, const TileKernels& tiles = tile_kernels());
  static void fill(const Source& source, std::byte* panels,
                   const TileKernels& tiles = tile_kernels());
  // The panels [first, end) of it, without what may be read behind the last one.
  static void fill_panels(const Source& source, int64_t first, int64_t end, std::byte* panels,
                          const TileKernels& tiles = tile_kernels());

  int64_t depth() const { return k_; }
  int64_t columns() const { return n_; }
  const TileKernels& tiles() const { return tiles_; }
  // Columns [index * panel_width, ...): k rows of panel_width floats, zero beyond n.
  const float* panel(int64_t index) const {
    EDDY_DCHECK(index >= 0 && index < num_panels()) << "panel " << index << " of " << num_panels();
    return reinterpret_cast<const float*>(panels_.get()) + index * panel_size_;
  }
  int64_t num_panels() const { return (n_ + tiles_.panel_width() - 1) / tiles_.panel_width(); }
  // How a product of so many rows by it is cut.
  ProductTiles product_tiles(int64_t num_rows) const {
    return {{num_rows, k_, n_, tiles_.panel_width()}, kFloatProductGrain};
  }

  // How the panels are read.
  struct Reading {
    // The last one first: in turn with the other way, a matrix that is read again and again finds
    // in a cache that is too small for it what has been read last.
    bool goes_back = false;
    // They are in the second-level cache: nothing is fetched ahead.
    bool is_cached = false;
  };
  struct Product {
    int64_t m = 0;
    const float* a = nullptr;
    int64_t a_row = 0;
    int64_t a_step = 1;
    float* c = nullptr;
    int64_t c_row = 0;
    const float* bias_or_null = nullptr;
    bool accumulate = false;
    // Of these panels' columns only.
    int64_t first_panel = 0, end_panel = INT64_MAX;
    int64_t c_panel = 0;  // the one at which c begins
    Reading reading = {};
  };
  void multiply(const Product& product) const;

 private:
  void multiply_panel(const Product& product, int64_t index, int64_t first, int64_t depth,
                      bool accumulate) const;

  const TileKernels& tiles_;
  int64_t k_, n_, panel_size_;
  PackedMemory panels_;
};

// The packing of constant bytes that a kernel is being bound to, shared with other kernels.
std::shared_ptr<const PackedMatrix> pack_matrix(const KernelInit& init, const float* b, int64_t k,
                                                int64_t n, int64_t row_step, int64_t column_step);

}  // namespace eddy::cpu
