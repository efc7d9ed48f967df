// BlockedConv: convolution of images whose channels lie in blocks of one vector,
//
//   X[n][c / b][h][w][c % b]  ->  Y[n][f / b][h][w][f % b],     b: floats in a vector
//
// in register tiles, with weights that were packed before. A window's row is one contiguous run of
// kernel * b values, and neighbouring output positions are rows of A at a constant stride, so
// nothing is copied: positions whose windows reach into the padding are tiles of their own with
// fewer taps. The blocks of X may have another width (few channels: the first layer of a network).
// Of windows of one element with strides, the positions that are read are gathered in scratch
// memory, if there is some: their rows are then one line.
// Bias, an addend of Y's layout and bounds are applied where the sums are stored, an activation to
// what has just been stored.
//
// The channels of X beyond the last one hold finite numbers: their weights are 0. Those of Y
// beyond the last filter are what the addend, the bounds and the activation make of 0.
//
// Determinism: the order of every sum depends on the shape and the instruction set. A call falls
// into parts by shape alone, which write apart.
// Threads: const use from any number. Cost: construction from weights of ONNX copies them once.
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

  // How the weights of one group lie where tiles read them in order: a panel of filters after the
  // other, in it the blocks of channels, their taps, their channels.
  struct Layout {
    int64_t filters, channels, taps;
    int64_t block;  // channels of X that lie beside each other
    int64_t panel_width = tile_kernels().panel_width();

    int64_t num_blocks() const { return (channels + block - 1) / block; }
    int64_t num_panels() const { return (filters + panel_width - 1) / panel_width; }
    int64_t depth() const { return num_blocks() * taps * block; }
    int64_t count() const { return num_panels() * depth() * panel_width; }
    // Packing falls into parts that write apart. `from`: [filters, channels, taps].
    int64_t num_parts() const { return num_panels() * channels; }
    void pack(const float* from, float* to, int64_t part) const;
  };
  // Of one group, over what has been packed, which the caller keeps.
  BlockedConv(const Layout& layout, const float* packed, const float* bias_or_null);

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
  // What a part of such a call likes to have, aligned to 64 bytes; 0: nothing.
  size_t scratch_bytes(const ConvShape& shape) const;
  void run_tile(const Call& call, uint32_t tile, void* scratch_or_null = nullptr) const;
  // All of one image and one group by panels [first, end).
  void run_panels(const Call& call, int64_t first, int64_t end) const;
  // By windows of one element, of one group: rows [first, end) of an image by a panel. Y has those
  // alone, [vector of the panel][row][column][width]; nothing is added to it.
  void run_rows(const Call& call, int64_t image, int64_t panel, int64_t first, int64_t end) const;

  const TileKernels& tiles() const { return tiles_; }
  int64_t num_panels() const { return layout_.num_panels(); }
  int64_t panel_width() const { return layout_.panel_width; }

 private:
  friend class BlockedConvPart;
  const float* panel(int64_t group, int64_t index) const {
    EDDY_DCHECK(index >= 0 && index < num_panels()) << "panel " << index;
    return weights() + group * layout_.count() + index * layout_.depth() * layout_.panel_width;
  }
  const float* weights_end() const { return weights() + groups_ * layout_.count(); }
  const float* weights() const { return reinterpret_cast<const float*>(weights_.get()); }
  void set_bias(const float* bias_or_null);
  const float* image_of(const Call& call, int64_t image, int64_t group) const;
  void gather(const ConvShape& shape, const float* x, int64_t first, int64_t end, float* to) const;

  const TileKernels& tiles_;
  const int64_t groups_;
  const Layout layout_;  // of a group
  PackedMemory weights_;
  std::vector<float> bias_;  // empty: none; else of whole blocks
};

}  // namespace eddy::cpu
