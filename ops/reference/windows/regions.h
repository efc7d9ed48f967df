// AlignRegion, PoolRegion: the image that a region of RoiAlign or MaxRoiPool is of, and where its
// bins lie on each axis.
//
//   RoiAlign    bins divide the region; each has some samples, which lie between two elements
//   MaxRoiPool  bins of whole elements, which they share
//
// Source: ONNX operators RoiAlign, opsets 10 and 16, and MaxRoiPool. Errors: kRunFailed, with the
// region's number. Threads: pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "graph/base/status.h"
#include "graph/ir/attributes.h"
#include "ops/contract/kernel.h"

namespace eddy {

struct AlignRule {
  bool takes_max = false, has_half_pixel = true;
  int64_t ratio = 0;  // samples in a bin on each axis; 0: as many as its elements
  double scale = 1;

  static AlignRule of(const KernelInit& init);
};

// A place between two elements of an axis; beyond an end by less than one element it is the end.
struct AxisPlace {
  bool is_inside = false;
  int64_t first = 0, second = 0;  // the same at the last element
  double beyond = 0;              // of `first`: the weight of `second`

  // Contract: size > 0.
  static AxisPlace of(double place, int64_t size) {
    const double n = static_cast<double>(size);
    if (!(place >= -1 && place <= n)) return {};
    place = std::clamp(place, 0.0, n - 1);
    const auto first = static_cast<int64_t>(place);
    return {true, first, std::min(first + 1, size - 1), place - static_cast<double>(first)};
  }
};

struct AlignAxis {
  static constexpr int64_t kMostSamples = 1 << 12;
  double start, bin;  // the size of a bin may be negative
  int64_t samples;    // in each bin; at most kMostSamples
  bool is_too_large;

  AlignAxis(const AlignRule& rule, double low, double high, int64_t bins) {
    const double shift = rule.has_half_pixel ? 0.5 : 0;
    start = low * rule.scale - shift;
    double size = high * rule.scale - shift - start;
    if (!rule.has_half_pixel) size = std::max(size, 1.0);
    bin = size / static_cast<double>(bins);
    const double wanted = rule.ratio > 0 ? static_cast<double>(rule.ratio) : std::ceil(bin);
    is_too_large = !(wanted <= static_cast<double>(kMostSamples));
    samples = wanted >= 1 && !is_too_large ? static_cast<int64_t>(wanted) : 0;
  }
  double place(int64_t of_bin, int64_t sample) const {
    return start + static_cast<double>(of_bin) * bin +
           (static_cast<double>(sample) + 0.5) * bin / static_cast<double>(samples);
  }
};

struct AlignRegion {
  int64_t image;
  AlignAxis rows, columns;

  // Of a call's region r.
  static Result<AlignRegion> of(const AlignRule& rule, const KernelArgs& args, int64_t r);
};

// In float, as detectors were trained: where a bin ends is a matter of the last bit.
struct PoolAxis {
  float start, bin;
  int64_t size;  // of the image

  PoolAxis(float scale, float low, float high, int64_t bins, int64_t image_size)
      : start(std::round(low * scale)),
        bin(std::max(std::round(high * scale) - start + 1, 1.0f) / static_cast<float>(bins)),
        size(image_size) {}
  // Elements of the image, from `first` to before `end`.
  int64_t first(int64_t of_bin) const {
    return place(std::floor(static_cast<float>(of_bin) * bin));
  }
  int64_t end(int64_t of_bin) const {
    return place(std::ceil(static_cast<float>(of_bin + 1) * bin));
  }

 private:
  // A NaN is the beginning, where a bin then ends, too: it has no element.
  int64_t place(float offset) const {
    const double at = static_cast<double>(start) + static_cast<double>(offset);
    return static_cast<int64_t>(std::min(std::max(0.0, at), static_cast<double>(size)));
  }
};

struct PoolRegion {
  int64_t image;
  PoolAxis rows, columns;

  static Result<PoolRegion> of(float scale, const KernelArgs& args, int64_t r);
};

}  // namespace eddy
