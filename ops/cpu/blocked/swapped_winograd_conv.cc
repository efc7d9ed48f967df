#include "ops/cpu/blocked/swapped_winograd_conv.h"

#include <algorithm>

#include "ops/cpu/blocked/winograd_conv.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

constexpr int64_t kInputs = 6;  // of a tile, on each axis
constexpr int64_t kProducts = 36;
constexpr int64_t kMaxWidth = 16, kMaxOutputs = 25;
// Units add up for themselves, and meet in the end: two of them for two threads cost one thread 5 %
// more than one.
constexpr int64_t kMaxUnits = 2;
// What is transformed, and the sums, stay in the second-level cache.
constexpr int64_t kTransformedFloats = 192 << 10;
constexpr int64_t kMaxSums = 320 << 10;

// Of `count` planes a vector for each element. Lanes beyond the last one are left as they are.
void block_planes_of(const float* from, int64_t size, int64_t count, float* to, int64_t width) {
  for (int64_t first = 0; first < count; first += width) {
    transpose_words(from + first * size, size, to + first * size, width, size,
                    std::min(width, count - first));
  }
}

}  // namespace

struct SwappedWinogradConv::Work {
  float* sums;              // [panel][product][image][filter of the panel]
  float *inputs, *weights;  // [product][block][image]; [panel][product][block][filter]
  float *plane, *windows;   // of a channel: vectors of images; of filters
};

bool SwappedWinogradConv::suits(const ConvShape& shape) {
  constexpr int64_t kMinSide = 6, kMinBlocks = 256;
  const TileKernels& tiles = tile_kernels();
  const Grid& grid = shape.grid;
  if (grid.rank != 2 || shape.group != 1 || grid.output[0] != grid.output[1]) return false;
  const int64_t outputs = grid.output[0];
  if (outputs != 3 && outputs != 5) return false;
  int64_t blocks = shape.channels;
  for (size_t i = 0; i < 2; ++i) {
    const WindowAxis& axis = grid.axes[i];
    if (axis.stride != 1 || axis.dilation != 1 || axis.kernel < kMinSide) return false;
    if (grid.input[i] == 0) return false;
    blocks *= div_up(axis.kernel, kInputs + 1 - outputs);
  }
  const int64_t images = div_up(shape.batch, tiles.width) * tiles.width;
  const int64_t filters = div_up(shape.filters, tiles.panel_width()) * tiles.panel_width();
  // Half-empty vectors save nothing.
  return 2 * shape.batch > images && 2 * shape.filters > filters && blocks >= kMinBlocks &&
         kProducts * images * filters <= kMaxSums;
}

SwappedWinogradConv::SwappedWinogradConv(const ConvShape& shape)
    : TwoStepConv(shape),
      tiles_(tile_kernels()),
      side_(kInputs + 1 - shape.grid.output[0]),
      block_rows_(div_up(shape.grid.axes[0].kernel, side_)),
      block_columns_(div_up(shape.grid.axes[1].kernel, side_)) {
  EDDY_DCHECK(suits(shape)) << "not for these tiles";
  num_units_ = std::min(shape.channels, kMaxUnits);
  const int64_t fitting = kTransformedFloats / (kProducts * (images() + filters()));
  at_once_ = std::clamp<int64_t>(fitting, 8, div_up(shape.channels, num_units_) * num_blocks());
}

int64_t SwappedWinogradConv::unit_floats() const {
  return sums_floats() + kProducts * at_once_ * (images() + filters()) +
         images() * shape_.grid.input_size + filters() * shape_.grid.kernel_size;
}

SwappedWinogradConv::Work SwappedWinogradConv::work_of(const Call& call, int64_t unit) const {
  Work work;
  work.sums = static_cast<float*>(call.shared) + unit * unit_floats();
  work.inputs = work.sums + sums_floats();
  work.weights = work.inputs + kProducts * at_once_ * images();
  work.plane = work.weights + kProducts * at_once_ * filters();
  work.windows = work.plane + images() * shape_.grid.input_size;
  return work;
}

void SwappedWinogradConv::prepare(const Call& call, void*, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  const Work work = work_of(call, unit);
  std::fill_n(work.plane, images() * shape_.grid.input_size, 0.0f);
  std::fill_n(work.windows, filters() * shape_.grid.kernel_size, 0.0f);
  const Span channels = part_of(shape_.channels, num_units_, unit);
  const Span all{channels.begin * num_blocks(), channels.end * num_blocks()};
  const int64_t rounds = div_up(all.size(), at_once_);
  for (int64_t round = 0; round < rounds; ++round) {
    const Span some = part_of(all.size(), rounds, round);
    for (int64_t i = some.begin; i < some.end; ++i) {
      const int64_t block = i % num_blocks();
      const bool is_new = block == 0;
      if (is_new) block_planes(call, work, channels.begin + i / num_blocks());
      transform_inputs(work, block, i - some.begin);
      transform_weights(work, block, i - some.begin);
    }
    multiply(work, some.size(), round == 0);
  }
}

void SwappedWinogradConv::block_planes(const Call& call, const Work& work, int64_t channel) const {
  const int64_t plane = shape_.grid.input_size, window = shape_.grid.kernel_size;
  block_planes_of(call.x + channel * shape_.batch * plane, plane, shape_.batch, work.plane,
                  tiles_.width);
  block_planes_of(call.weights + channel * shape_.filters * window, window, shape_.filters,
                  work.windows, tiles_.width);
}

void SwappedWinogradConv::transform_inputs(const Work& work, int64_t block, int64_t at) const {
  const Grid& grid = shape_.grid;
  WinogradArgs args = inputs_of_tile(grid, block / block_columns_ * side_,
                                     block % block_columns_ * side_, 6, work.plane, tiles_.width);
  args.to_row = at_once_ * images();
  for (int64_t first = 0; first < images(); first += tiles_.width) {
    args.to = work.inputs + at * images() + first;
    tiles_.winograd_6.input(args);
    args.from += tiles_.width * grid.input_size;
  }
}

void SwappedWinogradConv::transform_weights(const Work& work, int64_t block, int64_t at) const {
  const Grid& grid = shape_.grid;
  const int64_t row = block / block_columns_ * side_, column = block % block_columns_ * side_;
  const int64_t width = tiles_.panel_width(), columns = grid.axes[1].kernel;
  WinogradArgs args;
  args.end_row = static_cast<int>(std::min(side_, grid.axes[0].kernel - row));
  args.end_column = static_cast<int>(std::min(side_, columns - column));
  args.from_row = columns * tiles_.width;
  args.to_row = at_once_ * width;
  for (int64_t first = 0; first < filters(); first += tiles_.width) {
    args.from = work.windows + first * grid.kernel_size + (row * columns + column) * tiles_.width;
    args.to =
        work.weights + first / width * kProducts * at_once_ * width + at * width + first % width;
    tiles_.winograd_6.weights[side_ - 2](args);
  }
}

void SwappedWinogradConv::multiply(const Work& work, int64_t count, bool is_first) const {
  const int64_t width = tiles_.panel_width();
  TileArgs args;
  args.depth = count;
  args.a_step = images();
  args.a_row = 1;
  args.b_row = args.c_row = width;
  for (int64_t panel = 0; panel < num_panels(); ++panel) {
    const int64_t vectors =
        std::min<int64_t>(tiles_.max_vectors, div_up(shape_.filters - panel * width, tiles_.width));
    args.columns = static_cast<int>(vectors) * tiles_.width;
    for (int64_t product = 0; product < kProducts; ++product) {
      const int64_t at = panel * kProducts + product;
      const float* const b = work.weights + at * at_once_ * width;
      args.b = &b;
      int rows = 0;
      for (int64_t i = 0; i < shape_.batch; i += rows) {
        rows = tiles_.next_rows(shape_.batch - i, vectors, args);
        const float* const a = work.inputs + product * at_once_ * images() + i;
        args.a = &a;
        args.c = work.sums + (at * images() + i) * width;
        args.add_or_null = is_first ? nullptr : args.c;
        tiles_.run(args, rows, vectors);
      }
    }
  }
}

void SwappedWinogradConv::run(const Call& call, void*, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  const int64_t lanes = tiles_.width, width = tiles_.panel_width(), size = outputs() * outputs();
  EDDY_CHECK(lanes <= kMaxWidth && size <= kMaxOutputs) << lanes << " lanes of " << size;
  alignas(64) float products[kProducts * kMaxWidth], made[kMaxOutputs * kMaxWidth];
  WinogradArgs args;
  args.end_row = args.end_column = static_cast<int>(outputs());
  args.from = products;
  args.from_row = lanes;
  args.to = made;
  args.to_row = outputs() * lanes;
  const Span images_of_unit = part_of(shape_.batch, num_units_, unit);
  for (int64_t first = 0; first < shape_.filters; first += lanes) {
    const int64_t count = std::min(lanes, shape_.filters - first);
    for (int64_t n = images_of_unit.begin; n < images_of_unit.end; ++n) {
      for (int64_t k = 0; k < kProducts; ++k) {
        const int64_t at = ((first / width * kProducts + k) * images() + n) * width + first % width;
        float* const sum = products + k * lanes;
        std::copy_n(work_of(call, 0).sums + at, lanes, sum);
        for (int64_t other = 1; other < num_units_; ++other) {
          const float* const more = work_of(call, other).sums + at;
          for (int64_t l = 0; l < lanes; ++l) sum[l] += more[l];
        }
      }
      tiles_.winograd_6.output[outputs() - 2](args);
      transpose_words(made, lanes, call.y + (first * shape_.batch + n) * size, shape_.batch * size,
                      count, size);
    }
  }
}

}  // namespace eddy::cpu
