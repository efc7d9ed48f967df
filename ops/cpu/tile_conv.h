// TileConv: convolution with constant weights in register tiles, for small and narrow shapes
// where a library's set-up and layout changes cost more than the work.
//
// The input is copied once into padded rows with channels innermost, one group at a time. The
// taps of the last axis then lie behind each other, so a window's row is one contiguous run of
// kernel * channels values, and output positions are rows of A at a stride: no im2col. Weights
// are packed in the same order, filters in vectors. Taps that meet nothing but padding (a kernel
// of 3 on a signal of length 1) are left out, weights and all.
//
// Contract: any number of spatial axes; shapes may change from run to run, weights may not.
// Errors: kResourceExhausted from run.
// Threads: const use from any number, each with scratch of its own.
#pragma once

#include <memory>
#include <vector>

#include "graph/base/status.h"
#include "ops/contract/kernel.h"
#include "ops/cpu/blocked/two_step_conv.h"
#include "ops/cpu/gemm.h"
#include "ops/reference/windows/conv_shape.h"

namespace eddy::cpu {

class TileConv {
 public:
  // `weights` is W of ONNX: [filters, channels of a group, taps]. The packed weights are shared
  // with other kernels where `init_or_null` is the one that is being bound.
  TileConv(const TensorView& weights, int64_t group, const TileKernels& tiles = tile_kernels(),
           const KernelInit* init_or_null = nullptr);

  // Whether the shape's kernel has few enough separate runs of taps.
  static bool fits(const ConvShape& shape);
  // What run() reserves.
  size_t scratch_bytes(const ConvShape& shape) const;
  // Contract: fits(shape).
  Status run(const ConvShape& shape, const float* x, const float* bias_or_null, float* y,
             Scratch& scratch) const;
  // What run() does, in units that several threads may share; `this` must outlive it.
  std::unique_ptr<const TwoStepConv> steps(const ConvShape& shape) const;

 private:
  std::vector<PackedMatrix> groups_;  // rows: taps, channels innermost; columns: filters
};

}  // namespace eddy::cpu
