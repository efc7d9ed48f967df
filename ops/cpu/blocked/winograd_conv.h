// WinogradConv: convolutions of 3 x 3 windows on blocked images with a quarter of the
// multiplications, and of 5 x 5 windows with 0.36 of them: tiles of 6 x 6 inputs are transformed,
// multiplied channel by channel with transformed weights in 36 products of matrices, and
// transformed back to 4 x 4 outputs, or 2 x 2.
//
//   X ──> V[36][tile][channel] ──> M[36][tile][filter] ──> Y      some tiles at a time, in scratch
//
// Sums are rounded otherwise than a direct convolution's (some 1e-5 of the largest term), and
// something infinite in X makes NaNs of the up to 36 outputs around. Transformed weights take four
// times the memory, or 1.44 times.
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
// it lies from the image's first vector on, and which of its elements are there. Without `to`.
WinogradArgs inputs_of_tile(const Grid& grid, int64_t row, int64_t column, const float* image,
                            int64_t width);

class WinogradConv {
 public:
  // As of BlockedConv.
  WinogradConv(const TensorView& weights, const float* bias_or_null,
               const TileKernels& tiles = tile_kernels(), const KernelInit* init_or_null = nullptr);

  // How transformed weights lie where tiles read them in order: a panel of filters after the other,
  // in it the 36 products, their channels in whole blocks.
  struct Layout {
    int64_t filters, channels, window;
    const TileKernels& tiles = tile_kernels();

    int64_t depth() const { return (channels + tiles.width - 1) / tiles.width * tiles.width; }
    int64_t num_panels() const { return (filters + tiles.panel_width() - 1) / tiles.panel_width(); }
    int64_t count() const { return num_panels() * 36 * depth() * tiles.panel_width(); }
    // Packing falls into parts that write apart. `from`: [filters, channels, window, window].
    int64_t num_parts() const { return num_panels() * depth(); }
    void pack(const float* from, float* to, int64_t part) const;
  };
  // Over what has been packed for this processor's tiles, which the caller keeps.
  WinogradConv(const Layout& layout, const float* packed, const float* bias_or_null);

  // Whether its windows are made for it, and it saves time on an image of that size.
  static bool suits(const ConvShape& shape, const TileKernels& tiles = tile_kernels());

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
  // One of the 36 matrices of weights.
  const float* weights(int64_t panel, int64_t product) const {
    return reinterpret_cast<const float*>(weights_.get()) +
           (panel * 36 + product) * depth() * tiles_.panel_width();
  }

  const TileKernels& tiles_;
  const Layout layout_;
  PackedMemory weights_;
  std::vector<float> bias_;  // empty: none; else of whole blocks
};

}  // namespace eddy::cpu
