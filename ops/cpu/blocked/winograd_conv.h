// WinogradConv: convolutions of 3 x 3 windows on blocked images with a quarter of the
// multiplications, and of 5 x 5 windows with 0.36 of them: tiles of 6 x 6 inputs are transformed,
// multiplied channel by channel with transformed weights in 36 products of matrices, and
// transformed back to 4 x 4 outputs, or 2 x 2. Or, of 3 x 3 windows of small images with many
// channels, tiles of 4 x 4 inputs to 2 x 2 outputs: 0.44 of the multiplications.
//
//   X ──> V[product][tile][channel] ──> M[product][tile][filter] ──> Y     some tiles at a time
//
// Sums are rounded otherwise than a direct convolution's (some 1e-5 of the largest term). Something
// infinite in X makes NaNs of the outputs of its tiles, and so does what is within a factor of some
// hundred of the greatest float: transforms multiply it. Transformed weights take 4 times
// the memory (5 x 5: 1.44), by tiles of 4 x 4 1.78 times.
//
// Contract: stride and dilation 1, one group, blocks of the vector's width; channels beyond the
// last one are finite. Errors: none. Determinism and parts as BlockedConv.
// Threads: const use from any number, each with scratch memory of its own.
// Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/contract/kernel.h"
#include "ops/cpu/blocked/blocked_conv.h"
#include "ops/cpu/tile/tile.h"
#include "ops/reference/windows/conv_shape.h"

namespace eddy::cpu {

// The tile of inputs whose first one is at `row` and `column` of an image with its padding: where
// it lies from the image's first vector on, and which of its elements are there. `inputs`: of a
// tile, on each axis. Without `to`.
WinogradArgs inputs_of_tile(const Grid& grid, int64_t row, int64_t column, int64_t inputs,
                            const float* image, int64_t width);

class WinogradConv {
 public:
  // As of BlockedConv. `inputs`: of a tile, on each axis: 4 or 6.
  WinogradConv(const TensorView& weights, const float* bias_or_null, int64_t inputs,
               const TileKernels& tiles = tile_kernels(), const KernelInit* init_or_null = nullptr);

  // How transformed weights lie where tiles read them in order: a panel of filters after the other,
  // in it the products, their channels in whole blocks.
  struct Layout {
    int64_t filters, channels, window, inputs;
    const TileKernels& tiles = tile_kernels();

    int64_t depth() const { return (channels + tiles.width - 1) / tiles.width * tiles.width; }
    int64_t num_panels() const { return (filters + tiles.panel_width() - 1) / tiles.panel_width(); }
    int64_t num_products() const { return inputs * inputs; }
    int64_t count() const { return num_panels() * num_products() * depth() * tiles.panel_width(); }
    // Packing falls into parts that write apart. `from`: [filters, channels, window, window].
    int64_t num_parts() const { return num_panels() * depth(); }
    void pack(const float* from, float* to, int64_t part) const;
  };
  // Over what has been packed for this processor's tiles, which the caller keeps.
  WinogradConv(const Layout& layout, const float* packed, const float* bias_or_null);

  static constexpr int64_t kMinTiles = 12;  // of a call
  // Whether its windows are made for it, and it saves time on an image of that size by such tiles.
  static bool suits(const ConvShape& shape, int64_t inputs,
                    const TileKernels& tiles = tile_kernels());
  // Of the tiles that suit, those that take the least time; 0: none does.
  static int64_t best_inputs(const ConvShape& shape, const TileKernels& tiles = tile_kernels());

  uint32_t count_tiles(const ConvShape& shape) const;
  // Aligned to 64 bytes by the caller.
  size_t scratch_bytes() const;
  void run_tile(const BlockedConv::Call& call, uint32_t tile, void* scratch) const;
  // All of the first image by vectors [first, end) of filters.
  void run_vectors(const BlockedConv::Call& call, int64_t first, int64_t end, void* scratch) const;

 private:
  friend class WinogradPart;
  int64_t depth() const { return layout_.depth(); }
  int64_t num_panels() const { return layout_.num_panels(); }
  int64_t tiles_at_once() const;
  void set_bias(const float* bias_or_null);
  // One of the products' matrices of weights.
  const float* weights(int64_t panel, int64_t product) const {
    return reinterpret_cast<const float*>(weights_.get()) +
           (panel * layout_.num_products() + product) * depth() * tiles_.panel_width();
  }

  const TileKernels& tiles_;
  const Layout layout_;
  PackedMemory weights_;
  std::vector<float> bias_;  // empty: none; else of whole blocks
};

}  // namespace eddy::cpu
