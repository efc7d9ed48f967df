// GridSample: the value of X at any place, between its elements by weights along each axis.
//
//   place  of -1..1 on an axis of n elements: 0..n-1 (align_corners), or -1/2..n-1/2
//   inside elements outside are 0 (zeros), those at the edge (border), or mirrored (reflection)
//
// Weights: nearest element; two, linear; four, cubic convolution with a = -3/4.
// Source: ONNX operator GridSample, opsets 16 and 20.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/reference/families.h"
#include "ops/reference/number.h"
#include "ops/reference/window_walk.h"

namespace eddy {
namespace {

enum class Mode { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct SampleState : KernelState {
  Mode mode = Mode::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;
};

// On one axis: elements (-1: outside, worth 0) and their weights.
struct Taps {
  int count = 0;
  std::array<int64_t, 4> place{};
  std::array<double, 4> weight{};
};

class AxisSampler {
 public:
  AxisSampler(const SampleState& state, int64_t size)
      : state_(state),
        size_(size),
        low_(state.align_corners ? 0 : -0.5),
        high_(low_ + static_cast<double>(size) - (state.align_corners ? 1 : 0)) {}

  Taps taps(double coordinate) const {
    const double n = static_cast<double>(size_);
    double x =
        state_.align_corners ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
    if (!(std::fabs(x) < 1e15)) return {};  // nowhere, as a NaN is
    if (state_.mode == Mode::kNearest) x = std::nearbyint(x);
    if (state_.mode != Mode::kCubic) x = pulled_in(x);
    Taps taps;
    if (state_.mode == Mode::kNearest) {
      add(taps, std::nearbyint(x), 1);
      return taps;
    }
    const double base = std::floor(x), t = x - base;
    if (state_.mode == Mode::kLinear) {
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
    if (state_.padding == Padding::kBorder) {
      return std::clamp(x, 0.0, static_cast<double>(size_ - 1));
    }
    if (state_.padding == Padding::kZeros || (x >= low_ && x <= high_)) return x;
    const double span = high_ - low_;
    if (span <= 0) return 0;
    const double distance = x < low_ ? low_ - x : x - high_;
    const double turns = std::floor(distance / span);
    const double rest = distance - turns * span;
    const bool from_low = (x < low_) == (std::fmod(turns, 2) == 0);
    return from_low ? low_ + rest : high_ - rest;
  }
  void add(Taps& taps, double x, double weight) const {
    x = state_.padding == Padding::kZeros ? x : std::nearbyint(pulled_in(x));
    if (state_.padding != Padding::kZeros) x = std::clamp(x, 0.0, static_cast<double>(size_ - 1));
    const bool is_inside = x >= 0 && x < static_cast<double>(size_);
    taps.place[static_cast<size_t>(taps.count)] = is_inside ? static_cast<int64_t>(x) : -1;
    taps.weight[static_cast<size_t>(taps.count++)] = weight;
  }
  static double cubic(double d) {
    constexpr double kA = -0.75;
    if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
    return d < 2 ? ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA : 0;
  }

  const SampleState& state_;
  const int64_t size_;
  const double low_, high_;
};

using AllTaps = std::array<Taps, kMaxSpatialRank>;

// The weighted sum over axes from `axis` on; `place` is the index so far.
double weighted(const TensorView& x, const AllTaps& taps, int rank, int axis, int64_t plane,
                int64_t place) {
  if (axis == rank) return load_number(x, plane + place).to_double();
  const Taps& own = taps[static_cast<size_t>(axis)];
  double sum = 0;
  for (int i = 0; i < own.count; ++i) {
    const auto at = static_cast<size_t>(i);
    if (own.place[at] < 0 || own.weight[at] == 0) continue;
    sum += own.weight[at] *
           weighted(x, taps, rank, axis + 1, plane, place * x.dims[axis + 2] + own.place[at]);
  }
  return sum;
}

bool run_grid_sample(const KernelArgs& args) {
  const auto& state = static_cast<const SampleState&>(*args.state);
  const TensorView &x = args.inputs[0], &grid = args.inputs[1], &y = args.outputs[0];
  const int rank = x.rank - 2;
  int64_t in_size = 1, out_size = 1;
  for (int i = 2; i < x.rank; ++i) in_size *= x.dims[i];
  for (int i = 2; i < y.rank; ++i) out_size *= y.dims[i];
  for (int64_t n = 0; n < x.dims[0]; ++n) {
    for (int64_t out = 0; out < out_size; ++out) {
      AllTaps taps;
      for (int axis = 0; axis < rank; ++axis) {
        // The grid's first coordinate is of the last axis.
        const int64_t at = (n * out_size + out) * rank + (rank - 1 - axis);
        const AxisSampler sampler(state, x.dims[axis + 2]);
        taps[static_cast<size_t>(axis)] = sampler.taps(load_number(grid, at).to_double());
      }
      for (int64_t c = 0; c < x.dims[1]; ++c) {
        const int64_t plane = n * x.dims[1] + c;
        const double value = in_size == 0 ? 0 : weighted(x, taps, rank, 0, plane * in_size, 0);
        store_number(y, plane * out_size + out, Number::of_double(value));
      }
    }
  }
  return true;
}

Result<BoundKernel> bind_grid_sample(const KernelInit& init) {
  auto state = std::make_unique<SampleState>();
  const std::string_view mode = init.attributes.get_string("mode", "linear");
  const std::string_view padding = init.attributes.get_string("padding_mode", "zeros");
  state->mode = mode == "nearest"                      ? Mode::kNearest
                : mode == "cubic" || mode == "bicubic" ? Mode::kCubic
                                                       : Mode::kLinear;
  state->padding = padding == "border"       ? Padding::kBorder
                   : padding == "reflection" ? Padding::kReflection
                                             : Padding::kZeros;
  state->align_corners = init.attributes.get_int("align_corners", 0) != 0;
  BoundKernel kernel;
  kernel.run = run_grid_sample;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_grid_sample_reference(KernelRegistry& registry) {
  registry.add(
      {.op = "GridSample", .since_version = 16, .bind = bind_grid_sample, .provider = "reference"});
}

}  // namespace eddy
