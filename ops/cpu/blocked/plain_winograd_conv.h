// PlainWinogradConv: a convolution by Winograd's transforms (winograd_conv.h), image by image
// through blocks of channels, for callers that may round sums as these do.
//
//   prepare  transforms a part of the weights
//   run      blocks the channels of an image, convolves into blocks of filters, and turns these
//            back; all stays in the second-level cache meanwhile
//
// A unit of the second step is an image, or where images are few, some panels of one's filters.
#pragma once

#include "ops/cpu/blocked/two_step_conv.h"
#include "ops/cpu/blocked/winograd_conv.h"

namespace eddy::cpu {

class PlainWinogradConv : public TwoStepConv {
 public:
  static bool suits(const ConvShape& shape);
  explicit PlainWinogradConv(const ConvShape& shape);

  uint32_t num_units() const override { return static_cast<uint32_t>(shape_.batch * panel_sets_); }
  size_t shared_bytes() const override {
    return static_cast<size_t>(layout_.count()) * sizeof(float);
  }
  size_t scratch_bytes() const override;
  void prepare(const Call& call, void* scratch, uint32_t unit) const override;
  void run(const Call& call, void* scratch, uint32_t unit) const override;

 private:
  int64_t x_floats() const { return layout_.depth() * shape_.grid.input_size; }
  int64_t y_floats() const;
  WinogradConv conv_over(const Call& call) const;

  ConvShape image_;  // the shape of one
  const WinogradConv::Layout layout_;
  int64_t panel_sets_;
};

}  // namespace eddy::cpu
