// DeformConv of floats: some positions of an image at a time, whose taps are sampled into columns,
// each place once for all channels that move together; then a product for each group.
//
//   columns [channel, tap][position]     W [filter][channel, tap] * columns = Y [filter][position]
#include <algorithm>
#include <cmath>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/loops/loops.h"
#include "ops/cpu/sample_places.h"
#include "ops/cpu/tiles.h"
#include "ops/schema/rules/window.h"

namespace eddy {
namespace {

using cpu::Place;
using cpu::Places;
using cpu::Tiles;

struct DeformState : KernelState {
  Attributes attributes;
  int64_t group = 1, moved = 1;  // moved: how many parts of the channels have their own offsets
};

// How a call is cut: images, and positions of each, so few that their columns stay in the
// second-level cache.
struct Parts {
  static constexpr int64_t kColumnFloats = 1 << 17;
  int64_t num_columns, num_positions, positions_each, num_blocks;

  explicit Parts(const KernelArgs& args) {
    const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
    num_columns = x.dims[1] * w.dims[2] * w.dims[3];
    num_positions = y.dims[2] * y.dims[3];
    const int64_t most =
        std::clamp<int64_t>(kColumnFloats / std::max<int64_t>(num_columns, 1), 64, 1024);
    num_blocks = (num_positions + most - 1) / most;
    const int64_t even = num_blocks == 0 ? 0 : (num_positions + num_blocks - 1) / num_blocks;
    positions_each = (even + 15) / 16 * 16;
  }
};

Tiles tiles_of(const KernelArgs& args) {
  const Parts parts(args);
  return Tiles::of(args.outputs[0].dims[0] * parts.num_blocks,
                   parts.positions_each * parts.num_columns);
}

// Between the four elements around (row, column), those outside being nowhere.
Place place_of(double row, double column, int64_t height, int64_t width) {
  Place place;
  const bool is_near = row > -1 && row < static_cast<double>(height) && column > -1 &&
                       column < static_cast<double>(width);
  if (!is_near) return place;
  const double top = std::floor(row), left = std::floor(column);
  const double down = row - top, right = column - left;
  for (size_t i = 0; i < 4; ++i) {
    const int64_t r = static_cast<int64_t>(top) + (i >= 2 ? 1 : 0);
    const int64_t c = static_cast<int64_t>(left) + (i % 2 != 0 ? 1 : 0);
    const double weight = (i >= 2 ? down : 1 - down) * (i % 2 != 0 ? right : 1 - right);
    if (r < 0 || r >= height || c < 0 || c >= width || weight == 0) continue;
    place.offset[i] = r * width + c;
    place.weight[i] = static_cast<float>(weight);
  }
  return place;
}

// A call, and the part of an image that is computed: positions [begin, begin + count).
class DeformRun {
 public:
  DeformRun(const KernelArgs& args, const WindowAxis& rows, const WindowAxis& columns)
      : args_(args),
        state_(static_cast<const DeformState&>(*args.state)),
        rows_(rows),
        columns_(columns),
        taps_(args.inputs[1].dims[2] * args.inputs[1].dims[3]),
        channels_(args.inputs[0].dims[1]),
        plane_(args.inputs[0].dims[2] * args.inputs[0].dims[3]),
        multiply_(cpu::loop_set()
                      .binary[static_cast<size_t>(cpu::BinaryOp::kMul)]
                             [static_cast<size_t>(cpu::LoopType::kFloat)]
                      .both) {}

  // `values` has room for `count` of each column.
  void run(int64_t image, int64_t begin, int64_t count, Places& places, float* values) const {
    const int64_t each = channels_ / state_.moved;  // channels that move together
    for (int64_t part = 0; part < state_.moved; ++part) {
      for (int64_t tap = 0; tap < taps_; ++tap) {
        const int64_t by_tap = part * taps_ + tap;
        const float* const mask = args_.has_input(4) ? given(4, image, by_tap) + begin : nullptr;
        if (plane_ > 0) find(image, by_tap, begin, count, places);
        for (int64_t c = part * each; c < (part + 1) * each; ++c) {
          float* const column = values + (c * taps_ + tap) * count;
          if (plane_ == 0) {
            std::fill_n(column, count, 0.0f);
            continue;
          }
          cpu::sample_plane(args_.inputs[0].as<float>() + (image * channels_ + c) * plane_,
                            args_.inputs[0].dims[3], places, count, column);
          if (mask != nullptr) multiply_(column, mask, column, count);
        }
      }
    }
    multiply(image, begin, count, values);
  }

 private:
  // A plane of offset or mask.
  const float* given(size_t input, int64_t image, int64_t channel) const {
    const TensorView& view = args_.inputs[input];
    return view.as<float>() +
           (image * view.dims[1] + channel) * args_.outputs[0].dims[2] * args_.outputs[0].dims[3];
  }

  void find(int64_t image, int64_t by_tap, int64_t begin, int64_t count, Places& places) const {
    const int64_t tap = by_tap % taps_, kernel_width = args_.inputs[1].dims[3];
    const int64_t height = args_.inputs[0].dims[2], width = args_.inputs[0].dims[3];
    const int64_t out_width = args_.outputs[0].dims[3];
    const float* const down_by = given(2, image, 2 * by_tap);
    const float* const right_by = given(2, image, 2 * by_tap + 1);
    const auto row = [&](int64_t at) {
      return static_cast<double>(at / out_width * rows_.stride - rows_.pad_begin +
                                 tap / kernel_width * rows_.dilation);
    };
    const auto column = [&](int64_t at) {
      return static_cast<double>(at % out_width * columns_.stride - columns_.pad_begin +
                                 tap % kernel_width * columns_.dilation);
    };
    if (!Places::may_be_between(height, width)) {
      std::fill_n(places.first, count, cpu::kElsewhere);
    } else {
      for (int64_t i = 0; i < count;) {  // the rest of a row of positions at a time
        const int64_t at = begin + i;
        const int64_t in_row = std::min(out_width - at % out_width, count - i);
        cpu::sample_loops().find_moved({.down_by = down_by + at,
                                        .right_by = right_by + at,
                                        .count = in_row,
                                        .row = row(at),
                                        .column = column(at),
                                        .step = static_cast<double>(columns_.stride),
                                        .height = height,
                                        .width = width,
                                        .first = places.first + i,
                                        .right = places.right + i,
                                        .down = places.down + i});
        i += in_row;
      }
    }
    places.list_others(count, [&](int64_t i) {
      const int64_t at = begin + i;
      return place_of(row(at) + static_cast<double>(down_by[at]),
                      column(at) + static_cast<double>(right_by[at]), height, width);
    });
  }

  void multiply(int64_t image, int64_t begin, int64_t count, const float* values) const {
    const TensorView &w = args_.inputs[1], &y = args_.outputs[0];
    const int64_t filters = y.dims[1] / state_.group, size = y.dims[2] * y.dims[3];
    const float* const bias = args_.has_input(3) ? args_.inputs[3].as<float>() : nullptr;
    cpu::GemmArgs product;
    product.m = filters;
    product.n = product.b_row = count;
    product.k = product.a_row = w.dims[1] * taps_;
    product.c_row = size;
    product.accumulate = bias != nullptr;
    for (int64_t g = 0; g < state_.group; ++g) {
      const int64_t first = g * filters;
      product.a = w.as<float>() + first * product.k;
      product.b = values + g * product.k * count;
      product.c = y.mutable_as<float>() + (image * y.dims[1] + first) * size + begin;
      for (int64_t f = 0; bias != nullptr && f < filters; ++f) {
        std::fill_n(product.c + f * size, count, bias[first + f]);
      }
      cpu::gemm(product);
    }
  }

  const KernelArgs& args_;
  const DeformState& state_;
  const WindowAxis &rows_, &columns_;
  const int64_t taps_, channels_, plane_;
  const cpu::BinaryLoop multiply_;
};

bool run_deform(const KernelArgs& args, int64_t first, int64_t end) {
  const auto& state = static_cast<const DeformState&>(*args.state);
  const TensorView &x = args.inputs[0], &w = args.inputs[1];
  const Dims kernel = {w.dims[2], w.dims[3]};
  Windows windows;
  WindowAxis axes[2];
  int64_t size;
  Status status = parse_windows(state.attributes, 2, &kernel, windows);
  for (int i = 0; i < 2 && status.is_ok(); ++i) {
    status = resolve_axis(windows, i, x.dims[i + 2], axes[i], size);
  }
  if (!status.is_ok()) return args.fail(std::move(status));
  const Parts parts(args);
  if (first >= end) return true;
  const auto most = static_cast<size_t>(parts.positions_each);
  const size_t value_bytes = most * static_cast<size_t>(parts.num_columns) * sizeof(float);
  const size_t place_bytes = (most * Places::kBytesEach + 63) / 64 * 64;
  void* memory = args.scratch->reserve(place_bytes + value_bytes + 1);
  if (memory == nullptr) return args.fail(resource_exhausted("no memory for columns of taps"));
  Places places(memory, parts.positions_each);
  auto* const values = reinterpret_cast<float*>(static_cast<std::byte*>(memory) + place_bytes);
  const DeformRun run(args, axes[0], axes[1]);
  for (int64_t unit = first; unit < end; ++unit) {
    const int64_t begin = unit % parts.num_blocks * parts.positions_each;
    const int64_t count = std::min(parts.positions_each, parts.num_positions - begin);
    if (count > 0) run.run(unit / parts.num_blocks, begin, count, places, values);
  }
  return true;
}

// Elements of all columns, as far as is known: as many as taps are moved, for each channel.
double likely_columns(const KernelInit& init, const DeformState& state) {
  const TensorType &x = init.inputs[0].tensor, &offset = init.inputs[2].tensor;
  const int64_t channels = x.is_ranked && x.dims[1] > 0 ? x.dims[1] : 1;
  return static_cast<double>(cpu::likely_count(offset)) / 2 * static_cast<double>(channels) /
         static_cast<double>(state.moved);
}

Result<BoundKernel> bind_deform_conv(const KernelInit& init) {
  if (init.inputs[0].tensor.element != ElementType::kFloat) return cpu::no_fast_kernel(init);
  auto state = std::make_unique<DeformState>();
  state->attributes = init.attributes;
  state->group = init.attributes.get_int("group", 1);
  state->moved = init.attributes.get_int("offset_group", 1);
  BoundKernel kernel;
  kernel.run = cpu::run_all_units<tiles_of, run_deform>;
  if (likely_columns(init, *state) > static_cast<double>(cpu::kTileElements)) {
    cpu::set_tiles<tiles_of, run_deform>(kernel);
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_deform_conv_cpu(KernelRegistry& registry) {
  registry.add(
      {.op = "DeformConv", .since_version = 19, .bind = bind_deform_conv, .has_tiles = true});
}

}  // namespace eddy
