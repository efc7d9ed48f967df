// BlockedWindows: what a window of a blocked image makes of each channel by itself: pools, and
// convolutions in which each channel is a group (depthwise), of images
//
//   X[n][c / b][h][w][c % b]  ->  Y[n][c / b][h'][w'][c % b],     b: floats in a vector
//
// A row of windows is one call of a tile kernel. Determinism: taps are folded in one order. A call
// falls into parts by shape alone.
// Threads: const use from any number.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/cpu/blocked/activation.h"
#include "ops/cpu/tile/tile.h"
#include "ops/reference/parts/window_walk.h"

namespace eddy::cpu {

// A convolution's weights, [channels, 1, height, width] of ONNX, in vectors: one for each tap of a
// block of channels.
class DepthwiseWeights {
 public:
  DepthwiseWeights(const TensorView& weights, const float* bias_or_null,
                   const TileKernels& tiles = tile_kernels());
  const TileKernels& tiles() const { return tiles_; }
  const float* block(int64_t index) const { return data_.data() + index * taps_ * tiles_.width; }
  const float* bias_or_null(int64_t block) const {
    return bias_.empty() ? nullptr : bias_.data() + block * tiles_.width;
  }

 private:
  const TileKernels& tiles_;
  int64_t taps_;
  std::vector<float> data_, bias_;
};

class BlockedWindows {
 public:
  enum class Fold : uint8_t { kMax, kAverage, kProduct };
  struct Call {
    const Grid* grid = nullptr;  // two spatial axes
    int64_t num_images = 0;
    int64_t num_blocks = 0;  // of an image
    const float* x = nullptr;
    float* y = nullptr;
    bool counts_padding = false;                     // of averages
    const DepthwiseWeights* weights = nullptr;       // of products
    const float* add_or_null = nullptr;              // of products: laid out as Y
    const float* clamp_or_null = nullptr;            // of products
    const Activation* activation_or_null = nullptr;  // likewise
  };
  explicit BlockedWindows(Fold fold, const TileKernels& tiles = tile_kernels())
      : fold_(fold), tiles_(tiles) {}

  uint32_t count_tiles(const Grid& grid, int64_t num_images, int64_t num_blocks) const;
  void run_tile(const Call& call, uint32_t tile) const;
  // All of the blocks of one image, the first of which is `first_block` of the weights; one's
  // results begin `y_plane` floats behind the last one's. Without an addend.
  void run_planes(const Call& call, int64_t first_block, int64_t y_plane) const;

 private:
  const Fold fold_;
  const TileKernels& tiles_;
};

}  // namespace eddy::cpu
