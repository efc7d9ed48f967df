// ExpandedConv: a depthwise convolution of what a convolution by windows of one element makes of an
// image in blocks of channels (a network's expansion), band by band, so that what lies between the
// two stays in the second-level cache:
//
//   X ── 1 x 1, bias, end ── [some rows of a panel's channels] ── depthwise, bias, end ── Y
//
// A part of a call is a panel of channels in a band of an image's rows. Rows that the windows of
// two bands read are made for both.
//
// Determinism: parts depend on the shape and the instruction set alone.
// Threads: const use from any number, each with scratch of its own, aligned to 64 bytes.
// Source: Lin et al., "MCUNetV2" (2021), section 3, and Alwani et al., "Fused-layer CNN
// accelerators" (MICRO 2016): layers in turns over a part of the image.
#pragma once

#include <cstdint>

#include "ops/cpu/blocked/blocked_conv.h"
#include "ops/cpu/blocked/blocked_windows.h"

namespace eddy::cpu {

class ExpandedConv {
 public:
  // Both are the caller's. `expansion`: of one group by windows of one element.
  ExpandedConv(const BlockedConv& expansion, const DepthwiseWeights& weights)
      : expansion_(expansion), weights_(weights) {}

  // What becomes of sums at last.
  struct End {
    const float* clamp_or_null = nullptr;
    const Activation* activation_or_null = nullptr;
  };
  struct Call {
    const ConvShape* expansion = nullptr;  // stride 1, no padding
    const Grid* grid = nullptr;            // of the depthwise convolution
    const float* x = nullptr;
    float* y = nullptr;
    End inner, outer;
  };
  uint32_t count_tiles(const ConvShape& expansion, const Grid& grid) const;
  size_t scratch_bytes(const ConvShape& expansion, const Grid& grid) const;
  void run_tile(const Call& call, uint32_t tile, void* scratch) const;

 private:
  struct Partition;

  const BlockedConv& expansion_;
  const DepthwiseWeights& weights_;
};

}  // namespace eddy::cpu
