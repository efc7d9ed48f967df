// GridSample of images of floats, nearest and linear: places and weights once for all channels.
#include <algorithm>
#include <array>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/grid_sampler.h"

namespace eddy {
namespace {

using cpu::Tiles;

struct SampleState : KernelState {
  SampleRule rule;
  BoundKernel plain;  // of other than images, where the rank is not known before
};

// Where an output element reads in each plane: those outside, and those without weight, left out.
struct Place {
  int count = 0;
  std::array<int64_t, 4> offset;
  std::array<float, 4> weight;
};

constexpr int64_t kMostPlaces = 256;  // at once: they stay in the nearest cache

// A row of an output image.
Tiles tiles_of(const KernelArgs& args) {
  const TensorView& y = args.outputs[0];
  return Tiles::of(y.dims[0] * y.dims[2], y.dims[1] * y.dims[3], 16'384);
}

Place place_of(const SampleTaps& down, const SampleTaps& right, int64_t width) {
  Place place;
  for (int i = 0; i < down.count; ++i) {
    for (int j = 0; j < right.count; ++j) {
      const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
      if (down.place[a] < 0 || right.place[b] < 0) continue;
      if (down.weight[a] == 0 || right.weight[b] == 0) continue;
      const auto at = static_cast<size_t>(place.count++);
      place.offset[at] = down.place[a] * width + right.place[b];
      place.weight[at] = static_cast<float>(down.weight[a] * right.weight[b]);
    }
  }
  return place;
}

float sample(const float* plane, const Place& place) {
  const auto part = [&](size_t i) { return place.weight[i] * plane[place.offset[i]]; };
  if (place.count == 4) return (part(0) + part(1)) + (part(2) + part(3));
  float sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(place.count); ++i) sum += part(i);
  return sum;
}

bool run_rows(const KernelArgs& args, int64_t first, int64_t end) {
  const SampleRule& rule = static_cast<const SampleState&>(*args.state).rule;
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t channels = x.dims[1], rows = y.dims[2], columns = y.dims[3];
  const int64_t in_size = x.dims[2] * x.dims[3], out_size = rows * columns;
  const AxisSampler down(rule, x.dims[2]), right(rule, x.dims[3]);
  auto* places = static_cast<Place*>(args.scratch->reserve(kMostPlaces * sizeof(Place)));
  if (places == nullptr) return args.fail(resource_exhausted("no memory for places to sample"));
  for (int64_t unit = first; unit < end; ++unit) {
    const int64_t image = unit / rows, row = unit % rows;
    for (int64_t begin = 0; begin < columns; begin += kMostPlaces) {
      const int64_t count = std::min(kMostPlaces, columns - begin);
      const int64_t start = row * columns + begin;
      const float* grid = args.inputs[1].as<float>() + (image * out_size + start) * 2;
      for (int64_t i = 0; i < count; ++i) {
        // The grid's first coordinate is of the last axis. Of an empty plane nothing is read.
        places[i] = in_size == 0
                        ? Place()
                        : place_of(down.taps(grid[2 * i + 1]), right.taps(grid[2 * i]), x.dims[3]);
      }
      for (int64_t c = 0; c < channels; ++c) {
        const float* plane = x.as<float>() + (image * channels + c) * in_size;
        float* out = y.mutable_as<float>() + (image * channels + c) * out_size + start;
        for (int64_t i = 0; i < count; ++i) out[i] = sample(plane, places[i]);
      }
    }
  }
  return true;
}

bool run_any(const KernelArgs& args) {
  if (args.inputs[0].rank == 4) return cpu::run_all_units<tiles_of, run_rows>(args);
  const BoundKernel& plain = static_cast<const SampleState&>(*args.state).plain;
  KernelArgs own = args;
  own.state = plain.state.get();
  return plain.run(own);
}

Result<BoundKernel> bind_grid_sample(const KernelInit& init) {
  const TensorType &x = init.inputs[0].tensor, &grid = init.inputs[1].tensor;
  auto state = std::make_unique<SampleState>();
  state->rule = SampleRule::of(init.attributes);
  const bool is_other = x.is_ranked && x.dims.rank() != 4;
  if (is_other || x.element != ElementType::kFloat || grid.element != ElementType::kFloat ||
      state->rule.mode == SampleMode::kCubic) {
    return cpu::no_fast_kernel(init);
  }
  BoundKernel kernel;
  kernel.run = cpu::run_all_units<tiles_of, run_rows>;
  if (!x.is_ranked) {
    EDDY_ASSIGN_OR_RETURN(state->plain, bind_grid_sample_reference(init));
    kernel.run = run_any;
  }
  if (cpu::fills_tiles(init.outputs[0], 16'384)) cpu::set_tiles<tiles_of, run_rows>(kernel);
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_grid_sample_cpu(KernelRegistry& registry) {
  registry.add(
      {.op = "GridSample", .since_version = 16, .bind = bind_grid_sample, .has_tiles = true});
}

}  // namespace eddy
