// WinogradConv: convolutions of 3 x 3 windows on blocked images with a quarter of the
// multiplications: tiles of 6 x 6 inputs are transformed, multiplied channel by channel with
// transformed weights in 36 products of matrices, and transformed back to 4 x 4 outputs.
//
//   X ──> V[36][tile][channel] ──> M[36][tile][filter] ──> Y      some tiles at a time, in scratch
//
// Sums are rounded otherwise than a direct convolution's (some 1e-5 of the largest term), and
// something infinite in X makes NaNs of the up to 36 outputs around. Transformed weights take four
// times the memory.
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

class WinogradConv {
 public:
  // As of BlockedConv.
  WinogradConv(const TensorView& weights, const float* bias_or_null,
               const TileKernels& tiles = tile_kernels(), const KernelInit* init_or_null = nullptr);

  // Whether its windows are made for it, and it saves time on an image of that size.
  static bool suits(const ConvShape& shape, const TileKernels& tiles = tile_kernels());

  uint32_t count_tiles(const ConvShape& shape) const;
  // Aligned to 64 bytes by the caller.
  size_t scratch_bytes() const;
  void run_tile(const BlockedConv::Call& call, uint32_t tile, void* scratch) const;

 private:
  friend class WinogradPart;
  int64_t depth() const;       // channels, whole blocks
  int64_t num_panels() const;  // of filters
  int64_t tiles_at_once() const;
  // One of the 36 matrices of weights.
  const float* weights(int64_t panel, int64_t product) const {
    return reinterpret_cast<const float*>(weights_.get()) +
           (panel * 36 + product) * depth() * tiles_.panel_width();
  }

  void fill(const TensorView& weights, float* to) const;

  const TileKernels& tiles_;
  const int64_t channels_, filters_;
  PackedMemory weights_;
  std::vector<float> bias_;  // empty: none; else of whole blocks
};

}  // namespace eddy::cpu
