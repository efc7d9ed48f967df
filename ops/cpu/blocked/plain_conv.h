// PlainConv: a convolution by small windows, image by image through BlockedConv's layout.
//
//   prepare  packs a part of the weights
//   run      blocks the channels of an image, with the padding beside its rows so that no column
//            has fewer taps, convolves into blocks of filters, and turns these back; both stay in
//            the second-level cache meanwhile
//
// A unit of the second step is an image, or where images are few, some panels of one's filters.
#pragma once

#include "ops/cpu/blocked/block_plane.h"
#include "ops/cpu/blocked/blocked_conv.h"
#include "ops/cpu/blocked/two_step_conv.h"

namespace eddy::cpu {

class PlainConv : public TwoStepConv {
 public:
  static bool suits(const ConvShape& shape);
  explicit PlainConv(const ConvShape& shape);

  uint32_t num_units() const override { return static_cast<uint32_t>(shape_.batch * panel_sets_); }
  size_t shared_bytes() const override {
    return static_cast<size_t>(layout_.count()) * sizeof(float);
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(x_floats() + tile_kernels().width + y_floats()) * sizeof(float);
  }
  void prepare(const Call& call, void* scratch, uint32_t unit) const override;
  void run(const Call& call, void* scratch, uint32_t unit) const override;

 private:
  void block_image(const float* x, float* to) const;
  int64_t x_floats() const;
  int64_t y_floats() const;

  ConvShape image_;  // the shape of one
  const BlockedConv::Layout layout_;
  const ReadSpan columns_;
  int64_t panel_sets_;
};

}  // namespace eddy::cpu
