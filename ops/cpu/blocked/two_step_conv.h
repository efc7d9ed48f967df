// TwoStepConv: a convolution of images as ONNX lays them out, [n][c][h][w], in two steps of as many
// units, for weights that may change from call to call (training) and for register tiles:
//
//   prepare  packs a part of the weights, or copies a part of the images, into memory that all
//            units share, or adds up parts of sums
//   run      convolves a part, or adds up the parts, once all units have prepared
//
// Units of a step write apart. Contract: memory is the caller's, aligned to 64; what the functions
// here make is of one group, two spatial axes and sizes above 0 (tile_conv.h has its own contract).
// Determinism: units depend on the shape alone.
// Padding is added as zeros: a weight that is not finite spoils the positions there, too.
// Threads: const use from any number. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ops/reference/windows/conv_shape.h"

namespace eddy::cpu {

class TwoStepConv {
 public:
  struct Call {
    const float* x = nullptr;
    const float* weights = nullptr;
    const float* bias_or_null = nullptr;
    float* y = nullptr;
    void* shared = nullptr;
  };

  // Null where a library is faster that learns of the weights in the call. `may_round`: sums may be
  // rounded as Winograd's transforms round them.
  static std::unique_ptr<const TwoStepConv> create_or_null(const ConvShape& shape,
                                                           bool may_round = false);

  // Of swapped images, windows and results (swapped_conv.h), by sizes without the swap; sums may be
  // rounded so. Null: by more than two axes, or by groups.
  static std::unique_ptr<const TwoStepConv> create_swapped_or_null(const ConvShape& shape);

  explicit TwoStepConv(const ConvShape& shape) : shape_(shape) {}
  virtual ~TwoStepConv() = default;

  // Whether other threads are worth waking.
  bool is_large() const {
    constexpr int64_t kMinTerms = 4'000'000;
    return shape_.batch * shape_.grid.output_size * shape_.filters * shape_.channels *
               shape_.grid.kernel_size >=
           kMinTerms;
  }
  virtual uint32_t num_units() const = 0;
  virtual size_t shared_bytes() const = 0;
  virtual size_t scratch_bytes() const = 0;  // of a unit, of either step
  virtual void prepare(const Call& call, void* scratch, uint32_t unit) const = 0;
  virtual void run(const Call& call, void* scratch, uint32_t unit) const = 0;

 protected:
  const ConvShape shape_;
};

}  // namespace eddy::cpu
