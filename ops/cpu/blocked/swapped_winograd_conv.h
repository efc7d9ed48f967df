// SwappedWinogradConv: a swapped convolution (swapped_conv.h) of large windows and 3 x 3 or 5 x 5
// positions by Winograd's transforms (winograd_conv.h): the window falls into blocks of 4 x 4 or
// 2 x 2 taps, which each read a tile of 6 x 6 inputs, and
//
//   Y[f][n] = transformed back (sum over c, blocks of transformed X[c][n] * transformed W[c][f])
//
// in 36 products of matrices [images][blocks] and [blocks][filters], for callers that may round
// sums as these do.
//
//   prepare  some channels: transforms, and sums of products of its own
//   run      some images: the sums of all units, transformed back
#pragma once

#include "ops/cpu/blocked/block_plane.h"
#include "ops/cpu/blocked/two_step_conv.h"
#include "ops/cpu/tile/tile.h"

namespace eddy::cpu {

class SwappedWinogradConv : public TwoStepConv {
 public:
  static bool suits(const ConvShape& shape);
  explicit SwappedWinogradConv(const ConvShape& shape);

  uint32_t num_units() const override { return static_cast<uint32_t>(num_units_); }
  size_t shared_bytes() const override {
    return static_cast<size_t>(num_units_ * unit_floats()) * sizeof(float);
  }
  size_t scratch_bytes() const override { return 64; }  // none is read
  void prepare(const Call& call, void* scratch, uint32_t unit) const override;
  void run(const Call& call, void* scratch, uint32_t unit) const override;

 private:
  struct Work;  // of one unit

  int64_t outputs() const { return shape_.grid.output[0]; }
  int64_t num_blocks() const { return block_rows_ * block_columns_; }
  int64_t num_panels() const { return div_up(shape_.filters, tiles_.panel_width()); }
  // Whole vectors of images, and whole panels of filters.
  int64_t images() const { return div_up(shape_.batch, tiles_.width) * tiles_.width; }
  int64_t filters() const { return num_panels() * tiles_.panel_width(); }
  int64_t sums_floats() const { return 36 * images() * filters(); }
  int64_t unit_floats() const;
  Work work_of(const Call& call, int64_t unit) const;

  void block_planes(const Call& call, const Work& work, int64_t channel) const;
  void transform_inputs(const Work& work, int64_t block, int64_t at) const;
  void transform_weights(const Work& work, int64_t block, int64_t at) const;
  void multiply(const Work& work, int64_t count, bool is_first) const;

  const TileKernels& tiles_;
  const int64_t side_;  // of a block of taps
  const int64_t block_rows_, block_columns_;
  int64_t num_units_;
  int64_t at_once_;  // blocks of taps that are transformed before they are multiplied
};

}  // namespace eddy::cpu
