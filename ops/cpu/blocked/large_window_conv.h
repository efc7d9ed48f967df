// LargeWindowConv: a convolution of many taps and few positions, as the adjoint of weights is one:
//
//   Y[n][f][i][j] = bias[f] + sum over c, r, s of X[n][c][i + r][j + s] * W[f][c][r][s]
//
//   prepare  copies a part of the images with their padding, or packs a part of the weights into
//            panels of filters; each row of taps is a segment of a register tile
//   run      some rows of positions: a tile is a row's neighbours by a panel, over some rows of
//   taps,
//            whose weights stay in the second-level cache while all positions pass
#pragma once

#include "ops/cpu/blocked/block_plane.h"
#include "ops/cpu/blocked/two_step_conv.h"

namespace eddy::cpu {

class LargeWindowConv : public TwoStepConv {
 public:
  static bool suits(const ConvShape& shape);
  explicit LargeWindowConv(const ConvShape& shape);

  uint32_t num_units() const override { return static_cast<uint32_t>(num_units_); }
  size_t shared_bytes() const override {
    return static_cast<size_t>(packed_floats() + image_floats() * shape_.batch) * sizeof(float);
  }
  size_t scratch_bytes() const override;
  void prepare(const Call& call, uint32_t unit) const override;
  void run(const Call& call, void* scratch, uint32_t unit) const override;

 private:
  struct Work;  // of one unit

  int64_t num_panels() const { return div_up(shape_.filters, panel_width_); }
  int64_t packed_floats() const {
    return num_panels() * shape_.channels * shape_.grid.kernel_size * panel_width_;
  }
  int64_t plane_floats() const { return rows_.size * columns_.size; }
  int64_t image_floats() const { return shape_.channels * plane_floats(); }
  // Where a panel's weights of a channel begin.
  int64_t panel_at(int64_t panel, int64_t channel) const {
    return (panel * shape_.channels + channel) * shape_.grid.kernel_size * panel_width_;
  }
  Span lines_of(uint32_t unit) const {
    return part_of(shape_.batch * shape_.grid.output[0], num_units_, unit);
  }
  void pad_plane(const float* x, float* to) const;
  void run_segments(const Call& call, const Work& work, int64_t panel, Span segments) const;

  const ReadSpan rows_, columns_;
  int64_t panel_width_;
  int64_t segments_each_;  // rows of taps whose weights of a panel stay in the cache
  int64_t num_units_;
};

}  // namespace eddy::cpu
