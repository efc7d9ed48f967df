// GridSample of images of floats, nearest and linear: places and weights once for all channels.
#include <algorithm>
#include <cmath>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/sample_places.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/windows/grid_sampler.h"

namespace eddy {
namespace {

using cpu::Place;
using cpu::Places;
using cpu::Tiles;

struct SampleState : KernelState {
  SampleRule rule;
  BoundKernel plain;  // of other than images, where the rank is not known before
};

// How a call is cut: elements of an output plane, and of channels. Places are found once for all
// channels of a part. Where a plane fits into the second-level cache beside its places, parts are
// many; where it does not, a part reads all of it once, and there are more of channels.
struct Parts {
  static constexpr int64_t kSmallPlane = 32'768;
  int64_t places_each, num_places, channels_each, num_channels;

  explicit Parts(const KernelArgs& args) {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    const int64_t size = x.dims[2] * x.dims[3];
    num_places = y.dims[2] * y.dims[3];
    num_channels = x.dims[1];
    const bool is_small = size <= kSmallPlane;
    places_each = std::clamp<int64_t>(is_small ? size / 4 : size, 1024, 65'536);
    channels_each = std::min<int64_t>(std::max<int64_t>(num_channels, 1), is_small ? 32 : 16);
  }
  int64_t of_places() const { return (num_places + places_each - 1) / places_each; }
  int64_t of_channels() const { return (num_channels + channels_each - 1) / channels_each; }
};

Tiles tiles_of(const KernelArgs& args) {
  const Parts parts(args);
  return Tiles::of(args.outputs[0].dims[0] * parts.of_places() * parts.of_channels(),
                   parts.places_each * parts.channels_each, 16'384);
}

Place place_of(const SampleTaps& down, const SampleTaps& right, int64_t width) {
  Place place;
  for (int i = 0; i < down.count; ++i) {
    for (int j = 0; j < right.count; ++j) {
      const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
      if (down.place[a] < 0 || right.place[b] < 0) continue;
      if (down.weight[a] == 0 || right.weight[b] == 0) continue;
      place.offset[a * 2 + b] = down.place[a] * width + right.place[b];
      place.weight[a * 2 + b] = static_cast<float>(down.weight[a] * right.weight[b]);
    }
  }
  return place;
}

// The places of `count` coordinates (x, y).
struct Finder {
  const SampleRule& rule;
  const int64_t height, width;

  void find(const float* grid, int64_t count, Places& places) const {
    const bool may_be_between = rule.mode == SampleMode::kLinear &&
                                rule.padding != SamplePadding::kReflection &&
                                Places::may_be_between(height, width);
    if (may_be_between) {
      cpu::sample_loops().find({.grid = grid,
                                .count = count,
                                .x = axis(width),
                                .y = axis(height),
                                .first = places.first,
                                .right = places.right,
                                .down = places.down});
    } else {
      std::fill_n(places.first, count, cpu::kElsewhere);
    }
    const AxisSampler down(rule, height), right(rule, width);
    // The grid's first coordinate is of the last axis.
    places.list_others(count, [&](int64_t i) {
      return place_of(down.taps(static_cast<double>(grid[2 * i + 1])),
                      right.taps(static_cast<double>(grid[2 * i])), width);
    });
  }

 private:
  // What AxisSampler does, for coordinates that are not mirrored.
  cpu::SampleAxis axis(int64_t elements) const {
    const auto size = static_cast<double>(elements);
    return {.size = size,
            .factor = rule.align_corners ? size - 1 : size,
            .minus = rule.align_corners ? 0.0 : 1.0,
            .clamps = rule.padding == SamplePadding::kBorder};
  }
};

// The parts of an image's first channels come first.
bool run_parts(const KernelArgs& args, int64_t first, int64_t end) {
  const SampleRule& rule = static_cast<const SampleState&>(*args.state).rule;
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Parts parts(args);
  const int64_t in_size = x.dims[2] * x.dims[3];
  const Finder finder{rule, x.dims[2], x.dims[3]};
  const int64_t most = std::max<int64_t>(std::min(parts.places_each, parts.num_places), 1);
  void* memory = args.scratch->reserve(static_cast<size_t>(most) * Places::kBytesEach);
  if (memory == nullptr) return args.fail(resource_exhausted("no memory for places to sample"));
  Places places(memory, most);
  for (int64_t unit = first; unit < end; ++unit) {
    const int64_t begin = unit % parts.of_places() * parts.places_each;
    const int64_t count = std::min(parts.places_each, parts.num_places - begin);
    const int64_t group = unit / parts.of_places() % parts.of_channels();
    const int64_t image = unit / parts.of_places() / parts.of_channels();
    const float* grid = args.inputs[1].as<float>() + (image * parts.num_places + begin) * 2;
    if (in_size > 0) finder.find(grid, count, places);
    const int64_t end_channel = std::min((group + 1) * parts.channels_each, parts.num_channels);
    for (int64_t c = group * parts.channels_each; c < end_channel; ++c) {
      const int64_t plane = image * parts.num_channels + c;
      float* const to = y.mutable_as<float>() + plane * parts.num_places + begin;
      if (in_size == 0)
        std::fill_n(to, count, 0.0f);  // nothing lies in an empty plane
      else
        cpu::sample_plane(x.as<float>() + plane * in_size, x.dims[3], places, count, to);
    }
  }
  return true;
}

bool run_any(const KernelArgs& args) {
  if (args.inputs[0].rank == 4) return cpu::run_all_units<tiles_of, run_parts>(args);
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
  kernel.run = cpu::run_all_units<tiles_of, run_parts>;
  if (!x.is_ranked) {
    EDDY_ASSIGN_OR_RETURN(state->plain, bind_grid_sample_reference(init));
    kernel.run = run_any;
  }
  if (cpu::fills_tiles(init.outputs[0], 16'384)) cpu::set_tiles<tiles_of, run_parts>(kernel);
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_grid_sample_cpu(KernelRegistry& registry) {
  registry.add(
      {.op = "GridSample", .since_version = 16, .bind = bind_grid_sample, .has_tiles = true});
}

}  // namespace eddy
