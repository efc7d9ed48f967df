// GridSample: the value of X at any place, between its elements by weights along each axis
// (grid_sampler.h).
#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/window_walk.h"
#include "ops/reference/windows/grid_sampler.h"

namespace eddy {
namespace {

struct SampleState : KernelState {
  SampleRule rule;
};

using AllTaps = std::array<SampleTaps, kMaxSpatialRank>;

// The weighted sum over axes from `axis` on; `place` is the index so far.
double weighted(const TensorView& x, const AllTaps& taps, int rank, int axis, int64_t plane,
                int64_t place) {
  if (axis == rank) return load_number(x, plane + place).to_double();
  const SampleTaps& own = taps[static_cast<size_t>(axis)];
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
      for (int axis = 0; in_size > 0 && axis < rank; ++axis) {
        // The grid's first coordinate is of the last axis.
        const int64_t at = (n * out_size + out) * rank + (rank - 1 - axis);
        const AxisSampler sampler(state.rule, x.dims[axis + 2]);
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

}  // namespace

SampleRule SampleRule::of(const Attributes& attributes) {
  const std::string_view mode = attributes.get_string("mode", "linear");
  const std::string_view padding = attributes.get_string("padding_mode", "zeros");
  SampleRule rule;
  rule.mode = mode == "nearest"                      ? SampleMode::kNearest
              : mode == "cubic" || mode == "bicubic" ? SampleMode::kCubic
                                                     : SampleMode::kLinear;
  rule.padding = padding == "border"       ? SamplePadding::kBorder
                 : padding == "reflection" ? SamplePadding::kReflection
                                           : SamplePadding::kZeros;
  rule.align_corners = attributes.get_int("align_corners", 0) != 0;
  return rule;
}

Result<BoundKernel> bind_grid_sample_reference(const KernelInit& init) {
  auto state = std::make_unique<SampleState>();
  state->rule = SampleRule::of(init.attributes);
  return BoundKernel{.run = run_grid_sample, .state = std::move(state)};
}

void add_grid_sample_reference(KernelRegistry& registry) {
  registry.add({.op = "GridSample",
                .since_version = 16,
                .bind = bind_grid_sample_reference,
                .provider = "reference"});
}

}  // namespace eddy
