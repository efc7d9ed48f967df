// Windows: the geometry that convolutions and pools share. One rule computes output sizes for the
// schema and paddings for the kernels.
//
//   auto_pad NOTSET      the paddings given
//            VALID       none
//            SAME_UPPER  so that output = ceil(input / stride); the odd one at the end
//            SAME_LOWER  the same, the odd one at the beginning
//
// Paddings beside VALID or SAME are refused, as the standard demands; zeros there have no meaning.
//
// Source: ONNX operators Conv, ConvTranspose, MaxPool, AveragePool, opset 22.
// Errors: kInvalidArgument naming the attribute or axis. Nothing here allocates on success.
#pragma once

#include <array>
#include <cstdint>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/ir/attributes.h"
#include "graph/ir/types.h"

namespace eddy {

inline constexpr int kMaxSpatialRank = kMaxRank - 2;

struct WindowAxis {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;

  // Input elements from the first tap to the last.
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
};

enum class AutoPad : uint8_t { kNotSet, kValid, kSameUpper, kSameLower };

struct Windows {
  int rank = 0;  // spatial axes
  std::array<WindowAxis, kMaxSpatialRank> axes{};
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil_mode = false;

  const WindowAxis& operator[](int i) const {
    EDDY_DCHECK(i >= 0 && i < kMaxSpatialRank) << "spatial axis " << i;
    return axes[static_cast<size_t>(i)];
  }
  WindowAxis& operator[](int i) { return axes[static_cast<size_t>(i)]; }
};

// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode for `rank` spatial axes and
// checks them. The kernel's sizes are `kernel` (the spatial dimensions of a weight; unknown ones
// allowed) where rank > 0, and must then agree with kernel_shape if that is given.
Status parse_windows(const Attributes& attributes, int rank, const Dims* kernel_or_null,
                     Windows& windows);

// Refuses paddings as wide as a window: one that lies in the padding alone has no value.
Status check_pads(const Windows& windows);

// Output size of one axis and, for SAME, its paddings (which it sets). `input` may be unknown: the
// result then is unknown, or `input` itself where the window keeps sizes.
Status resolve_axis(const Windows& windows, int i, int64_t input, WindowAxis& axis,
                    int64_t& output);

// Transposed convolution: the attributes beyond Windows.
struct TransposedWindows {
  Windows windows;
  std::array<int64_t, kMaxSpatialRank> output_padding{};
  std::array<int64_t, kMaxSpatialRank> output_shape{};
  bool has_output_shape = false;
};
Status parse_transposed_windows(const Attributes& attributes, int rank, const Dims* kernel_or_null,
                                TransposedWindows& windows);
// Sets pad_begin of `axis`; pad_end is what is left.
Status resolve_transposed_axis(const TransposedWindows& windows, int i, int64_t input,
                               WindowAxis& axis, int64_t& output);

}  // namespace eddy
