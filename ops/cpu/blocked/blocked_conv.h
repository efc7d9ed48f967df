// BlockedConv: convolution of images whose channels lie in blocks of one vector,
//
//   X[n][c / b][h][w][c % b]  ->  Y[n][f / b][h][w][f % b],     b: floats in a vector
//
// with constant weights, in register tiles. A window's row is one contiguous run of kernel * b
// values, and neighbouring output positions are rows of A at a constant stride, so nothing is
// copied: positions whose windows reach into the padding are tiles of their own with fewer taps.
// The blocks of X may have another width (few channels: the first layer of a network). Bias, an
// addend of Y's layout and bounds are applied where the sums are stored, an activation to what has
// just been stored.
//
// The channels of X beyond the last one hold finite numbers: their weights are 0. Those of Y
// beyond the last filter are what the addend, the bounds and the activation make of 0.
//
// Determinism: the order of every sum depends on the shape and the instruction set. A call falls
// into parts by shape alone, which write apart.
// Threads: const use from any number. Cost: construction copies the weights once.
// Source: Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
// Architectures" (SC 2018), section II: blocked layouts, register blocking, loops around them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/base/check.h"
#include "ops/contract/kernel.h"
#include "ops/cpu/blocked/activation.h"
#include "ops/cpu/tile/tile.h"
#include "ops/reference/windows/conv_shape.h"

namespace eddy::cpu {

class BlockedConv {
 public:
  // `weights` is W of ONNX, [filters, channels of a group, height, width]; `bias_or_null` has one
  // value for each filter. `x_block`: channels in a block of X. Several groups need whole blocks
  // each, of channels and of filters. The packed weights, which may be any numbers, are shared with
  // other kernels where `init_or_null` is the one that is being bound.
  BlockedConv(const TensorView& weights, const float* bias_or_null, int64_t group, int64_t x_block,
              const TileKernels& tiles = tile_kernels(), const KernelInit* init_or_null = nullptr);

  struct Call {
    const ConvShape* shape = nullptr;  // two spatial axes; channels and filters as ONNX has them
    const float* x = nullptr;
    float* y = nullptr;
    const float* add_or_null = nullptr;    // laid out as Y
    const float* clamp_or_null = nullptr;  // the least value of Y and the greatest
    const Activation* activation_or_null = nullptr;
  };
  // How many parts a call has.
  uint32_t count_tiles(const ConvShape& shape) const;
  void run_tile(const Call& call, uint32_t tile) const;

  const TileKernels& tiles() const { return tiles_; }

 private:
  friend class BlockedConvPart;
  // Rows of weights of one group, in the order in which tiles read them.
  int64_t depth() const { return blocks_ * taps_ * block_; }
  int64_t num_panels() const;
  const float* panel(int64_t group, int64_t index) const {
    EDDY_DCHECK(index >= 0 && index < num_panels()) << "panel " << index;
    return weights() + (group * num_panels() + index) * depth() * tiles_.panel_width();
  }
  const float* weights_end() const {
    return weights() + groups_ * num_panels() * depth() * tiles_.panel_width();
  }
  const float* weights() const { return reinterpret_cast<const float*>(weights_.get()); }
  void fill(const TensorView& weights, float* to) const;

  const TileKernels& tiles_;
  const int64_t groups_;
  int64_t channels_, filters_;  // of a group
  int64_t taps_ = 0;
  const int64_t block_;  // channels of X that lie beside each other
  int64_t blocks_;       // of them in a group
  PackedMemory weights_;
  std::vector<float> bias_;  // empty: none; else of whole blocks
};

}  // namespace eddy::cpu
