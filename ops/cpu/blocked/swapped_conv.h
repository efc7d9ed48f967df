// SwappedConv: a convolution whose images, windows and results have their first two axes swapped,
// as the adjoint of weights is one (of a layer's images and of the adjoint of its results):
//
//   Y[f][n][r][s] = sum over c, i, j of X[c][n][r + i][s + j] * W[c][f][i][j]
//
// Of any windows and positions; where swapped_winograd_conv.h suits, that is faster.
//
//   prepare  a unit takes some c, a panel of f and some n. It packs windows by filters and pads the
//            rows of images beneath them, as much as the second-level cache holds, and adds up what
//            they give at all positions: a register tile is some n, or neighbours in s, by a panel,
//            and each row of a window is a segment of its sums
//   run      adds up the sums of different c in their order, and turns them over into Y
//
// Nothing is turned over as a whole. Sizes are those of the convolution without the swap: channels
// are c, the batch is n.
#pragma once

#include "ops/cpu/blocked/block_plane.h"
#include "ops/cpu/blocked/two_step_conv.h"

namespace eddy::cpu {

class SwappedConv : public TwoStepConv {
 public:
  static bool suits(const ConvShape& shape);
  explicit SwappedConv(const ConvShape& shape);

  uint32_t num_units() const override {
    return static_cast<uint32_t>(channel_parts_ * panels_ * image_parts_);
  }
  size_t shared_bytes() const override {
    return static_cast<size_t>(channel_parts_ * panels_ * panel_floats()) * sizeof(float);
  }
  size_t scratch_bytes() const override;
  void prepare(const Call& call, void* scratch, uint32_t unit) const override;
  void run(const Call& call, void* scratch, uint32_t unit) const override;

 private:
  // What a unit of prepare() works on, with the block of windows that is packed.
  struct Work {
    Span channels, images;
    int64_t first_filter = 0, filters = 0;
    float* sums = nullptr;  // [image of all][position][filter of the panel]
    float* packed = nullptr;
    float* padded = nullptr;
    const float **a = nullptr, **b = nullptr;
    // Of the block: windows of some channels, or rows of one's; columns [first, first + count).
    Span some, window_rows, window_columns;
    bool is_first = false;  // its sums start at 0
  };

  int64_t positions() const { return shape_.batch * shape_.grid.output_size; }
  int64_t panel_floats() const { return positions() * panel_width_; }
  const WindowAxis& axis(size_t i) const { return shape_.grid.axes[i]; }
  // Elements of an axis that windows' taps [0, taps) read at all positions.
  int64_t reach(size_t i, int64_t taps) const {
    return (shape_.grid.output[i] - 1) * axis(i).stride + (taps - 1) * axis(i).dilation + 1;
  }
  int64_t max_padded_floats() const;
  void pack_block(const Call& call, const Work& work) const;
  void pad_plane(const float* x, const Work& work, float* to) const;
  void add_block(const Call& call, const Work& work) const;
  void add_tiles(const Work& work, int64_t image, int64_t num_images) const;

  const int64_t panel_width_, panels_;
  const bool is_by_images_;                           // a tile's rows are images, not neighbours
  int64_t columns_each_, rows_each_, channels_each_;  // of windows in a block
  int64_t channel_parts_, image_parts_;
};

}  // namespace eddy::cpu
