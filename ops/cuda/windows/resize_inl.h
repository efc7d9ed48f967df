// The body of Resize: one thread for each output element, which finds its taps and weights by
// itself; for the device and for tests on the host. The rules are those of
// ops/reference/windows/resize_axis.h, where their source is named.
#pragma once

#include "ops/cuda/device/params.h"
#include "ops/cuda/device/scalar_ops.h"
#include "ops/cuda/reduce/row_inl.h"

namespace eddy::cuda {

inline constexpr int32_t kResizeNearest = 0, kResizeCubic = 2;
inline constexpr int32_t kHalfPixel = 0, kHalfPixelSymmetric = 1, kPytorchHalfPixel = 2,
                         kAlignCorners = 3, kAsymmetric = 4, kTfHalfPixelForNearest = 5,
                         kTfCropAndResize = 6;

EDDY_HD double resize_coordinate(const ResizeParams& p, const ResizeAxisParams& axis, int64_t out) {
  const double x = static_cast<double>(out), in = static_cast<double>(axis.in);
  const double half_pixel = (x + 0.5) / axis.scale - 0.5, exact = axis.scale * in, last = in - 1;
  switch (p.coordinates) {
    case kHalfPixel:
      return half_pixel;
    case kHalfPixelSymmetric:
      return in / 2 * (1 - static_cast<double>(axis.out) / exact) + half_pixel;
    case kPytorchHalfPixel:
      return axis.out > 1 ? half_pixel : 0;
    case kAlignCorners:
      return axis.out == 1 ? 0 : x * last / (exact - 1);
    case kAsymmetric:
      return x / axis.scale;
    case kTfHalfPixelForNearest:
      return (x + 0.5) / axis.scale;
    default:
      return axis.out > 1
                 ? axis.roi_begin * last + x * (axis.roi_end - axis.roi_begin) * last / (exact - 1)
                 : 0.5 * (axis.roi_begin + axis.roi_end) * last;
  }
}

EDDY_HD double resize_weight(const ResizeParams& p, double distance) {
  const double d = std::fabs(distance), a = p.cubic_coefficient;
  if (p.mode != kResizeCubic) return d < 1 ? 1 - d : 0;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

EDDY_HD int64_t resize_nearest(const ResizeParams& p, double x) {
  switch (p.rounding) {
    case 0:  // prefer floor
      return static_cast<int64_t>(std::ceil(x - 0.5));
    case 1:  // prefer ceil
      return static_cast<int64_t>(std::floor(x + 0.5));
    case 2:
      return static_cast<int64_t>(std::floor(x));
    default:
      return static_cast<int64_t>(std::ceil(x));
  }
}

EDDY_HD int64_t clamp_index(int64_t index, int64_t size) {
  return index < 0 ? 0 : index < size ? index : size - 1;
}

// What one axis contributes to one output position.
struct ResizeTaps {
  double x;  // the position in the input
  int64_t first;
  int64_t count;
  double narrow;  // distances are multiplied by it
  double total;   // of the weights
  bool is_inside;
};

EDDY_HD double tap_weight(const ResizeParams& p, const ResizeAxisParams& axis,
                          const ResizeTaps& taps, int64_t t) {
  const int64_t index = taps.first + t;
  if (p.excludes_outside != 0 && (index < 0 || index >= axis.in)) return 0;
  return resize_weight(p, (static_cast<double>(index) - taps.x) * taps.narrow);
}

EDDY_HD ResizeTaps find_taps(const ResizeParams& p, const ResizeAxisParams& axis, int64_t out) {
  if (axis.num_taps == 0) return {0, out, 1, 1, 1, true};
  ResizeTaps taps;
  const double last = static_cast<double>(axis.in - 1);
  const double x = resize_coordinate(p, axis, out);
  taps.is_inside = p.coordinates != kTfCropAndResize || (x >= 0 && x <= last);
  // Bounded, so that no region of interest leads beyond 64 bits.
  taps.x = x == x ? (x < -4.0 - last ? -4.0 - last : x > 2 * last + 4.0 ? 2 * last + 4.0 : x) : 0;
  taps.count = axis.num_taps;
  taps.narrow = p.antialiases != 0 && axis.scale < 1 ? axis.scale : 1.0;
  taps.total = 1;
  if (p.mode == kResizeNearest) {
    taps.first = clamp_index(resize_nearest(p, taps.x), axis.in);
    return taps;
  }
  taps.first = static_cast<int64_t>(std::floor(taps.x)) - taps.count / 2 + 1;
  double total = 0;
  for (int64_t t = 0; t < taps.count; ++t) total += tap_weight(p, axis, taps, t);
  if (total != 0) taps.total = total;
  return taps;
}

// The weighted sum over all combinations of taps.
template <typename T>
EDDY_HD double sum_taps(const ResizeParams& p, const ResizeTaps (&taps)[kMaxAxes]) {
  int64_t at[kMaxAxes] = {};
  double sum = 0;
  for (int axis = 0; axis >= 0;) {
    double weight = 1;
    int64_t from = 0;
    for (int d = 0; d < p.rank; ++d) {
      if (p.axes[d].num_taps != 0)
        weight *= tap_weight(p, p.axes[d], taps[d], at[d]) / taps[d].total;
      from += clamp_index(taps[d].first + at[d], p.axes[d].in) * p.axes[d].stride;
    }
    if (weight != 0) sum += weight * static_cast<double>(load(static_cast<const T*>(p.in)[from]));
    for (axis = p.rank - 1; axis >= 0; --axis) {
      if (++at[axis] < taps[axis].count) break;
      at[axis] = 0;
    }
  }
  return sum;
}

template <typename T>
EDDY_HD T from_sum(double value) {
  if constexpr (is_real<T>) {
    return store_double<T>(value);
  } else {
    return saturate<T>(value);
  }
}

template <typename T>
EDDY_HD void run_resize(const ResizeParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    ResizeTaps taps[kMaxAxes];
    bool is_inside = true;
    auto rest = static_cast<int64_t>(item);
    int64_t nearest = 0;
    for (int d = p.rank - 1; d >= 0; --d) {
      taps[d] = find_taps(p, p.axes[d], rest % p.axes[d].out);
      rest /= p.axes[d].out;
      is_inside = is_inside && taps[d].is_inside;
      nearest += taps[d].first * p.axes[d].stride;
    }
    T& out = static_cast<T*>(p.out)[item];
    if (!is_inside) {
      out = from_sum<T>(p.extrapolation);
    } else if (p.mode == kResizeNearest) {
      out = static_cast<const T*>(p.in)[nearest];
    } else {
      out = from_sum<T>(sum_taps<T>(p, taps));
    }
  }
}

}  // namespace eddy::cuda
