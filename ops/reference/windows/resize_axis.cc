#include "ops/reference/windows/resize_axis.h"

#include <algorithm>
#include <cmath>

#include "graph/base/check.h"

namespace eddy {
namespace {

double cubic(double a, double distance) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

double linear(double distance) { return std::max(1 - std::abs(distance), 0.0); }

int64_t nearest(ResizeRounding rounding, double x) {
  switch (rounding) {
    case ResizeRounding::kPreferFloor:
      return static_cast<int64_t>(std::ceil(x - 0.5));
    case ResizeRounding::kPreferCeil:
      return static_cast<int64_t>(std::floor(x + 0.5));
    case ResizeRounding::kFloor:
      return static_cast<int64_t>(std::floor(x));
    case ResizeRounding::kCeil:
      return static_cast<int64_t>(std::ceil(x));
  }
  return 0;
}

// Elements on either side of the position: 1 or 2, wider where a shrinking filter is.
int64_t reach(const ResizeRules& rules, double filter_scale) {
  const double radius = rules.mode == ResizeMode::kCubic ? 2 : 1;
  return static_cast<int64_t>(std::ceil(radius / filter_scale));
}

}  // namespace

// A filter that antialiases is as wide as the input elements that fall into one output element.
double ResizeAxis::filter_scale(const ResizeRules& rules) const {
  return rules.antialiases ? std::min(scale, 1.0) : 1.0;
}

int64_t ResizeAxis::num_taps(const ResizeRules& rules) const {
  if (output == 0) return 0;  // the scale may be 0
  return rules.mode == ResizeMode::kNearest ? 1 : 2 * reach(rules, filter_scale(rules));
}

double ResizeAxis::coordinate(const ResizeRules& rules, int64_t out) const {
  const double x = static_cast<double>(out), last = static_cast<double>(input - 1);
  const double half_pixel = (x + 0.5) / scale - 0.5;
  // The size before it was rounded down; ONNX's own tests align corners to it.
  const double exact = scale * static_cast<double>(input);
  switch (rules.coordinates) {
    case ResizeCoordinates::kHalfPixel:
      return half_pixel;
    case ResizeCoordinates::kHalfPixelSymmetric: {
      const double adjustment = static_cast<double>(output) / exact;
      return static_cast<double>(input) / 2 * (1 - adjustment) + half_pixel;
    }
    case ResizeCoordinates::kPytorchHalfPixel:
      return output > 1 ? half_pixel : 0;
    case ResizeCoordinates::kAlignCorners:
      return output == 1 ? 0 : x * last / (exact - 1);
    case ResizeCoordinates::kAsymmetric:
      return x / scale;
    case ResizeCoordinates::kTfHalfPixelForNearest:
      return (x + 0.5) / scale;
    case ResizeCoordinates::kTfCropAndResize:
      return output > 1 ? roi_begin * last + x * (roi_end - roi_begin) * last / (exact - 1)
                        : 0.5 * (roi_begin + roi_end) * last;
  }
  return 0;
}

bool ResizeAxis::fill(const ResizeRules& rules, int64_t out, int64_t* indices,
                      double* weights) const {
  EDDY_DCHECK(input > 0 && out >= 0 && out < output) << "position " << out << " of " << output;
  const double x = coordinate(rules, out);
  const double last = static_cast<double>(input - 1);
  const bool crops = rules.coordinates == ResizeCoordinates::kTfCropAndResize;
  const bool is_outside = crops && !(x >= 0 && x <= last);
  // Bounded, so that no region of interest leads beyond 64 bits.
  const double bounded = x == x ? std::clamp(x, -4.0 - last, 2 * last + 4.0) : 0;
  const int64_t taps = num_taps(rules);
  if (rules.mode == ResizeMode::kNearest) {
    indices[0] = std::clamp<int64_t>(nearest(rules.rounding, bounded), 0, input - 1);
    weights[0] = 1;
    return !is_outside;
  }
  const double narrow = filter_scale(rules);
  const int64_t first = static_cast<int64_t>(std::floor(bounded)) - taps / 2 + 1;
  double total = 0;
  for (int64_t t = 0; t < taps; ++t) {
    const int64_t index = first + t;
    const double distance = (static_cast<double>(index) - bounded) * narrow;
    weights[t] = rules.mode == ResizeMode::kCubic ? cubic(rules.cubic_coefficient, distance)
                                                  : linear(distance);
    if (rules.excludes_outside && (index < 0 || index >= input)) weights[t] = 0;
    indices[t] = std::clamp<int64_t>(index, 0, input - 1);
    total += weights[t];
  }
  for (int64_t t = 0; t < taps && total != 0; ++t) weights[t] /= total;
  return !is_outside;
}

}  // namespace eddy
