// PlainConv: a convolution of images as ONNX lays them out, [n][c][h][w], whose weights may change
// from call to call (training), by BlockedConv's tiles.
//
//   first  each unit packs a part of the weights, for all
//   then   each unit blocks the channels of its image, convolves into blocks of filters, and turns
//          them back: images are small enough to stay in the second-level cache meanwhile
//
// A unit of the second step is an image, or where images are few, some panels of one's filters.
// Units of a step write apart; the second step reads what all units of the first have written.
//
// Contract: one group, two spatial axes, sizes above 0. Memory is the caller's, aligned to 64.
// Determinism: units depend on the shape alone. Threads: const use from any number. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cpu/blocked/blocked_conv.h"

namespace eddy::cpu {

class PlainConv {
 public:
  // What the tiles can take, and do faster than a library that is told of the weights in the call.
  static bool suits(const ConvShape& shape);

  explicit PlainConv(const ConvShape& shape);

  // Whether other threads are worth waking.
  bool is_large() const;
  uint32_t num_units() const { return static_cast<uint32_t>(shape_.batch * panel_sets_); }
  // Of the packed weights; and what a unit needs for itself.
  size_t shared_bytes() const { return static_cast<size_t>(layout_.count()) * sizeof(float); }
  size_t scratch_bytes() const {
    return static_cast<size_t>(x_floats() + y_floats()) * sizeof(float);
  }
  void pack(const float* weights, void* shared, uint32_t unit) const;

  struct Call {
    const float* x = nullptr;
    const float* bias_or_null = nullptr;
    float* y = nullptr;
  };
  void run(const Call& call, const void* shared, void* scratch, uint32_t unit) const;

 private:
  // One channel is its own block.
  bool is_x_blocked() const { return layout_.channels > 1; }
  int64_t x_floats() const;
  int64_t y_floats() const;

  const ConvShape shape_;
  ConvShape image_;  // the shape of one
  const BlockedConv::Layout layout_;
  int64_t panel_sets_;
};

}  // namespace eddy::cpu
