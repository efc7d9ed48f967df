// AxisSampler: where GridSample reads on one axis, and with which weights.
//
//   place  of -1..1 on an axis of n elements: 0..n-1 (align_corners), or -1/2..n-1/2
//   inside elements outside are 0 (zeros), those at the edge (border), or mirrored (reflection);
//          beside a coordinate that is NaN all are 0
//
// Weights: nearest element; two, linear; four, cubic convolution with a = -3/4.
// Source: ONNX operator GridSample, opsets 16 and 20. Threads: pure.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "graph/ir/attributes.h"
#include "ops/contract/kernel.h"

namespace eddy {

enum class SampleMode : uint8_t { kNearest, kLinear, kCubic };
enum class SamplePadding : uint8_t { kZeros, kBorder, kReflection };

struct SampleRule {
  SampleMode mode = SampleMode::kLinear;
  SamplePadding padding = SamplePadding::kZeros;
  bool align_corners = false;

  static SampleRule of(const Attributes& attributes);
};

// On one axis: elements (-1: outside, worth 0) and their weights.
struct SampleTaps {
  int count = 0;
  std::array<int64_t, 4> place{};
  std::array<double, 4> weight{};
};

class AxisSampler {
 public:
  AxisSampler(const SampleRule& rule, int64_t size)
      : rule_(rule),
        size_(size),
        low_(rule.align_corners ? 0 : -0.5),
        high_(low_ + static_cast<double>(size) - (rule.align_corners ? 1 : 0)) {}

  SampleTaps taps(double coordinate) const {
    if (coordinate != coordinate) return {};  // nowhere
    // A place for infinities, too; farther out no mirror tells places apart.
    coordinate = std::clamp(coordinate, -1e15, 1e15);
    const double n = static_cast<double>(size_);
    double x =
        rule_.align_corners ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
    if (rule_.mode == SampleMode::kNearest) x = std::nearbyint(x);
    if (rule_.mode != SampleMode::kCubic) x = pulled_in(x);
    SampleTaps taps;
    if (rule_.mode == SampleMode::kNearest) {
      add(taps, std::nearbyint(x), 1);
      return taps;
    }
    const double base = std::floor(x), t = x - base;
    if (rule_.mode == SampleMode::kLinear) {
      add(taps, base, 1 - t);
      add(taps, base + 1, t);
      return taps;
    }
    for (int k = -1; k <= 2; ++k) add(taps, base + k, cubic(std::fabs(t - k)));
    return taps;
  }

 private:
  // Where a place outside is looked up.
  double pulled_in(double x) const {
    if (rule_.padding == SamplePadding::kBorder) {
      return std::clamp(x, 0.0, static_cast<double>(size_ - 1));
    }
    if (rule_.padding == SamplePadding::kZeros || (x >= low_ && x <= high_)) return x;
    const double span = high_ - low_;
    if (span <= 0) return 0;
    const double distance = x < low_ ? low_ - x : x - high_;
    const double turns = std::floor(distance / span);
    const double rest = distance - turns * span;
    const bool from_low = (x < low_) == (std::fmod(turns, 2) == 0);
    return from_low ? low_ + rest : high_ - rest;
  }
  void add(SampleTaps& taps, double x, double weight) const {
    x = rule_.padding == SamplePadding::kZeros ? x : std::nearbyint(pulled_in(x));
    if (rule_.padding != SamplePadding::kZeros)
      x = std::clamp(x, 0.0, static_cast<double>(size_ - 1));
    const bool is_inside = x >= 0 && x < static_cast<double>(size_);
    taps.place[static_cast<size_t>(taps.count)] = is_inside ? static_cast<int64_t>(x) : -1;
    taps.weight[static_cast<size_t>(taps.count++)] = weight;
  }
  static double cubic(double d) {
    constexpr double kA = -0.75;
    if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
    return d < 2 ? ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA : 0;
  }

  const SampleRule& rule_;
  const int64_t size_;
  const double low_, high_;
};

Result<BoundKernel> bind_grid_sample_reference(const KernelInit& init);

}  // namespace eddy
