// ResizeRules: Resize's attributes, and the sizes and scales that follow from its inputs.
//
// Source: ONNX operator Resize, opset 10 to 19.
// Errors: kInvalidArgument naming the attribute or input. Nothing here allocates on success.
#pragma once

#include <array>
#include <cstdint>

#include "graph/base/status.h"
#include "graph/ir/attributes.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"

namespace eddy {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class ResizeCoordinates : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNearest,
  kTfCropAndResize
};
enum class ResizeRounding : uint8_t { kPreferFloor, kPreferCeil, kFloor, kCeil };
enum class ResizeAspect : uint8_t { kStretch, kNotLarger, kNotSmaller };

struct ResizeRules {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kPreferFloor;
  ResizeAspect aspect = ResizeAspect::kStretch;
  double cubic_coefficient = -0.75;
  double extrapolation_value = 0;
  bool excludes_outside = false;
  bool antialiases = false;
  std::span<const int64_t> axes;  // borrowed from the attributes; empty: all
  // Which inputs are what; opset 10 has neither roi nor sizes (-1).
  int roi_input = 1, scales_input = 2, sizes_input = 3;
};

Status parse_resize(const Attributes& attributes, int since_version, ResizeRules& rules);

// What becomes of each axis of X.
struct ResizeShape {
  Dims output;
  std::array<double, kMaxRank> scales{};
  // The place of an axis in scales, sizes and roi, or -1 where it is not resized.
  std::array<int, kMaxRank> places{};
  int num_places = 0;
};

// `scales` or `sizes` must be known (the other omitted or empty), and X's dimensions too.
Status resolve_resize(const ResizeRules& rules, const Dims& x, const TensorView* scales_or_null,
                      const TensorView* sizes_or_null, ResizeShape& shape);

// tf_crop_and_resize needs a region of interest: a begin and an end for each axis that is resized
// of an X of `rank` dimensions. Its shape may be unknown.
Status check_roi(const ResizeRules& rules, int rank, const TensorType* roi_or_null);

}  // namespace eddy
