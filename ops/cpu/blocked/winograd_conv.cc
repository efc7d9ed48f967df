#include "ops/cpu/blocked/winograd_conv.h"

#include <algorithm>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/blocked/block_plane.h"
#include "ops/cpu/packing/pack_bytes.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

constexpr int64_t kMaxWidth = 16, kMaxTaps = 25;
// Transformed inputs stay in the second-level cache.
constexpr int64_t kInputFloats = 216 << 10;
constexpr int64_t kMaxTilesAtOnce = 54;
// Multiply-adds that are worth another worker's wake-up, and the most parts of a call.
constexpr int64_t kPartWork = int64_t{1} << 19;
constexpr int64_t kMaxParts = 64;

struct TileGrid {
  int64_t outputs, rows, columns;  // outputs of a tile, on each axis

  TileGrid(const ConvShape& s, int64_t inputs)
      : outputs(inputs + 1 - s.grid.axes[0].kernel),
        rows(div_up(s.grid.output[0], outputs)),
        columns(div_up(s.grid.output[1], outputs)) {}
  int64_t count() const { return rows * columns; }
};

// Images, then bands of tiles, then sets of filters. Each set transforms its inputs anew.
struct Partition {
  int64_t bands, sets;

  Partition(const ConvShape& s, const TileGrid& grid, int64_t num_products,
            const TileKernels& tiles)
      : num_vectors_(div_up(s.filters, tiles.width)), unit_(tiles.max_vectors) {
    constexpr int64_t kMinTiles = 24, kEnoughParts = 16, kSetVectors = 3;
    const int64_t work = grid.count() * num_products * s.channels * s.filters;
    const int64_t most = std::max<int64_t>(kMaxParts / std::max<int64_t>(s.batch, 1), 1);
    const int64_t wanted = count_parts(work, kPartWork, most);
    bands = count_bands(grid.count() / kMinTiles, wanted);
    sets = std::clamp<int64_t>(div_up(wanted, bands), 1, num_units());
    if (bands * num_units() >= std::min(wanted, kEnoughParts)) return;
    // Few panels divide badly among threads: an even number of sets of their vectors.
    unit_ = 1;
    const int64_t most_sets = std::max<int64_t>(num_vectors_ / kSetVectors / 2 * 2, 1);
    sets = std::clamp<int64_t>(div_up(wanted, bands), 1, most_sets);
  }
  int64_t count() const { return bands * sets; }
  // Vectors of filters.
  Span set(int64_t index) const {
    const Span units = part_of(num_units(), sets, index);
    return {units.begin * unit_, std::min(units.end * unit_, num_vectors_)};
  }

 private:
  int64_t num_units() const { return div_up(num_vectors_, unit_); }

  int64_t num_vectors_;
  int64_t unit_;  // vectors: a panel, or one
};

}  // namespace

WinogradArgs inputs_of_tile(const Grid& grid, int64_t row, int64_t column, int64_t inputs,
                            const float* image, int64_t width) {
  row -= grid.axes[0].pad_begin;
  column -= grid.axes[1].pad_begin;
  const auto bound = [inputs](int64_t at) {
    return static_cast<int>(std::clamp<int64_t>(at, 0, inputs));
  };
  WinogradArgs args;
  args.first_row = bound(-row);
  args.end_row = bound(grid.input[0] - row);
  args.first_column = bound(-column);
  args.end_column = bound(grid.input[1] - column);
  args.from = image + (row * grid.input[1] + column) * width;
  args.from_row = grid.input[1] * width;
  return args;
}

// Some tiles of one image by some vectors of filters.
class WinogradPart {
 public:
  WinogradPart(const WinogradConv& conv, const BlockedConv::Call& call, int64_t image,
               float* scratch)
      : conv_(conv),
        call_(call),
        tiles_(conv.tiles_),
        transforms_(tiles_.winograd(conv.layout_.inputs)),
        num_products_(conv.layout_.num_products()),
        grid_(*call.shape, conv.layout_.inputs) {
    const ConvShape& s = *call.shape;
    x_block_ = s.grid.input_size * tiles_.width;
    y_block_ = s.grid.output_size * tiles_.width;
    x_ = call.x + image * div_up(s.channels, tiles_.width) * x_block_;
    y_at_ = image * div_up(s.filters, tiles_.width) * y_block_;
    at_once_ = conv.tiles_at_once();
    inputs_ = scratch;
    products_ = scratch + num_products_ * at_once_ * conv.depth();
  }

  void run(Span tiles, Span vectors) {
    const int64_t rounds = div_up(tiles.size(), at_once_);
    for (int64_t round = 0; round < rounds; ++round) {
      const Span part = part_of(tiles.size(), rounds, round);
      const Span some{tiles.begin + part.begin, tiles.begin + part.end};
      for (int64_t t = some.begin; t < some.end; ++t) transform_inputs(t, t - some.begin);
      for (int64_t at = vectors.begin; at < vectors.end;) {
        const int64_t panel_end = (at / tiles_.max_vectors + 1) * tiles_.max_vectors;
        const Span of_panel = {at, std::min(panel_end, vectors.end)};
        multiply(of_panel, some.size());
        for (int64_t t = some.begin; t < some.end; ++t) {
          transform_outputs(of_panel, t, t - some.begin);
        }
        at = of_panel.end;
      }
    }
  }

 private:
  struct Place {
    int64_t row, column;  // of the first output
  };
  Place place_of(int64_t tile) const {
    return {tile / grid_.columns * grid_.outputs, tile % grid_.columns * grid_.outputs};
  }

  void transform_inputs(int64_t tile, int64_t at) const {
    const Grid& grid = call_.shape->grid;
    const Place place = place_of(tile);
    WinogradArgs args =
        inputs_of_tile(grid, place.row, place.column, conv_.layout_.inputs, x_, tiles_.width);
    args.to_row = at_once_ * conv_.depth();
    const int64_t num_blocks = conv_.depth() / tiles_.width;
    for (int64_t block = 0; block < num_blocks; ++block, args.from += x_block_) {
      args.to = inputs_ + at * conv_.depth() + block * tiles_.width;
      transforms_.input(args);
    }
  }

  // The products of `count` rows, by some vectors of a panel.
  void multiply(Span filters, int64_t count) const {
    const int64_t width = tiles_.panel_width(), vectors = filters.size();
    const int64_t panel = filters.begin / tiles_.max_vectors;
    const int64_t first = filters.begin % tiles_.max_vectors;
    TileArgs args;
    args.depth = args.a_row = conv_.depth();
    args.b_row = args.c_row = width;
    // The next product's weights lie behind this one's. Each strip fetches a part of all of them,
    // or of each row a line.
    const bool is_whole = vectors == tiles_.max_vectors;
    if (!is_whole) args.ahead_step = width;
    args.columns = static_cast<int>(vectors) * tiles_.width;
    for (int64_t product = 0; product < num_products_; ++product) {
      const float* const b = conv_.weights(panel, product) + first * tiles_.width;
      args.b = &b;
      const float* ahead = b + conv_.depth() * width;
      int64_t lines = product + 1 < num_products_ ? vectors : 0;
      int rows = 0;
      for (int64_t i = 0; i < count; i += rows) {
        rows = tiles_.next_rows(count - i, vectors, args);
        const float* const a = inputs_ + (product * at_once_ + i) * conv_.depth();
        args.a = &a;
        args.c = products_ + (product * at_once_ + i) * width;
        const int64_t fetched = lines_ahead(rows, args.columns);
        args.ahead_or_null = lines > 0 ? ahead : nullptr;
        lines -= fetched;
        ahead += fetched * kLineFloats * (is_whole ? conv_.depth() : 1);
        tiles_.run(args, rows, vectors);
      }
    }
  }

  void transform_outputs(Span filters, int64_t tile, int64_t at) const {
    const Grid& grid = call_.shape->grid;
    const Place place = place_of(tile);
    WinogradArgs args;
    args.end_row = static_cast<int>(std::min(grid_.outputs, grid.output[0] - place.row));
    args.end_column = static_cast<int>(std::min(grid_.outputs, grid.output[1] - place.column));
    args.from_row = at_once_ * tiles_.panel_width();
    args.to_row = grid.output[1] * tiles_.width;
    args.clamp_or_null = call_.clamp_or_null;
    for (int64_t v = filters.begin; v < filters.end; ++v) {
      const int64_t y_at =
          y_at_ + v * y_block_ + (place.row * grid.output[1] + place.column) * tiles_.width;
      args.from = products_ + at * tiles_.panel_width() + (v - filters.begin) * tiles_.width;
      args.to = call_.y + y_at;
      args.add_or_null = call_.add_or_null ? call_.add_or_null + y_at : nullptr;
      args.bias_or_null = conv_.bias_.empty() ? nullptr : conv_.bias_.data() + v * tiles_.width;
      transforms_.output[grid_.outputs - 2](args);
      if (call_.activation_or_null == nullptr) continue;
      for (int row = 0; row < args.end_row; ++row) {
        call_.activation_or_null->apply(args.to + row * args.to_row,
                                        args.end_column * tiles_.width);
      }
    }
  }

  const WinogradConv& conv_;
  const BlockedConv::Call& call_;
  const TileKernels& tiles_;
  const TileKernels::Winograd& transforms_;
  const int64_t num_products_;
  const TileGrid grid_;
  const float* x_;
  int64_t x_block_, y_block_, y_at_, at_once_;
  float *inputs_, *products_;  // [product][at_once][depth], [product][at_once][panel]
};

void WinogradConv::Layout::pack(const float* from, float* to, int64_t part) const {
  EDDY_DCHECK(part >= 0 && part < num_parts()) << "part " << part << " of " << num_parts();
  const int64_t panel = part / depth(), channel = part % depth(), taps = window * window;
  const int64_t width = tiles.width, step = depth() * tiles.panel_width();
  to += (panel * num_products() * depth() + channel) * tiles.panel_width();
  EDDY_CHECK(width <= kMaxWidth && taps <= kMaxTaps) << width << " filters of " << taps << " taps";
  alignas(64) float turned[kMaxTaps * kMaxWidth];
  WinogradArgs args;
  args.end_row = args.end_column = static_cast<int>(window);
  args.from = turned;
  args.from_row = window * width;
  args.to_row = step;
  for (int64_t v = 0; v < tiles.max_vectors; ++v) {
    const int64_t first = panel * tiles.panel_width() + v * width;
    const int64_t count = channel < channels ? std::clamp<int64_t>(filters - first, 0, width) : 0;
    if (count < width) std::fill_n(turned, taps * width, 0.0f);
    if (count > 0) {
      const float* const windows = from + (first * channels + channel) * taps;
      transpose_words(windows, channels * taps, turned, width, taps, count);
    }
    args.to = to + v * width;
    tiles.winograd(inputs).weights[window - 2](args);
  }
}

WinogradConv::WinogradConv(const TensorView& weights, const float* bias_or_null, int64_t inputs,
                           const TileKernels& tiles, const KernelInit* init_or_null)
    : tiles_(tiles), layout_{weights.dims[0], weights.dims[1], weights.dims[2], inputs, tiles} {
  EDDY_CHECK(weights.rank == 4 && weights.dims[2] == weights.dims[3] &&
             (layout_.window == 3 || layout_.window == 5))
      << "windows other than 3 x 3 and 5 x 5";
  EDDY_CHECK(inputs == 6 || (inputs == 4 && layout_.window == 3)) << "tiles of " << inputs;
  const std::string layout =
      "winograd conv " + to_string(Dims(weights.shape())) + " by " + std::to_string(inputs);
  const auto fill = [&](std::byte* to) {
    for (int64_t part = 0; part < layout_.num_parts(); ++part) {
      layout_.pack(weights.as<float>(), reinterpret_cast<float*>(to), part);
    }
  };
  weights_ = pack_bytes(init_or_null, weights.data, layout,
                        static_cast<size_t>(layout_.count()) * sizeof(float), fill);
  EDDY_CHECK(weights_ != nullptr) << "out of memory packing " << layout_.count() << " weights";
  set_bias(bias_or_null);
}

WinogradConv::WinogradConv(const Layout& layout, const float* packed, const float* bias_or_null)
    : tiles_(tile_kernels()),
      layout_(layout),
      weights_(PackedMemory(), reinterpret_cast<const std::byte*>(packed)) {
  set_bias(bias_or_null);
}

void WinogradConv::set_bias(const float* bias_or_null) {
  if (bias_or_null == nullptr) return;
  bias_.assign(static_cast<size_t>(div_up(layout_.filters, tiles_.width) * tiles_.width), 0.0f);
  std::copy_n(bias_or_null, layout_.filters, bias_.begin());
}

int64_t WinogradConv::tiles_at_once() const {
  const int64_t rows = tiles_.max_rows;
  const int64_t fitting = kInputFloats / (layout_.num_products() * depth()) / rows * rows;
  return std::clamp<int64_t>(fitting, 2 * rows, kMaxTilesAtOnce / rows * rows);
}

// With few tiles the weights, of which there are more, take longer to read than they save.
bool WinogradConv::suits(const ConvShape& shape, int64_t inputs, const TileKernels& tiles) {
  const int64_t window = shape.grid.axes[0].kernel;
  const auto is_made_for = [window](const WindowAxis& axis) {
    return axis.kernel == window && axis.stride == 1 && axis.dilation == 1;
  };
  if (shape.grid.rank != 2 || shape.group != 1 || shape.channels < tiles.width) return false;
  if (window != 3 && (window != 5 || inputs != 6)) return false;
  if (!is_made_for(shape.grid.axes[0]) || !is_made_for(shape.grid.axes[1])) return false;
  const TileGrid grid(shape, inputs);
  // Transforms and multiplications against the direct convolution's.
  return shape.batch * grid.count() >= kMinTiles &&
         grid.count() * inputs * inputs * 3 < shape.grid.output_size * window * window * 2;
}

// Measured on a Xeon with AVX-512: reading a weight from the third-level cache takes as long as so
// many multiply-adds, and a fourth goes to transforms. 256 channels of 14 x 14 take 0.91 ms by
// tiles of 4 x 4, 1.03 by 6 x 6; 512 of 7 x 7 1.75 ms directly, 2.35 by 4 x 4.
int64_t WinogradConv::best_inputs(const ConvShape& shape, const TileKernels& tiles) {
  constexpr int64_t kWeightTerms = 40;
  const int64_t window = shape.grid.axes[0].kernel;
  int64_t best = 0, least = window * window * (shape.grid.output_size + kWeightTerms) * 4;
  for (const int64_t inputs : {6, 4}) {
    if (!suits(shape, inputs, tiles)) continue;
    const int64_t tiles_and_weights = TileGrid(shape, inputs).count() + kWeightTerms;
    const int64_t cost = inputs * inputs * tiles_and_weights * 5;
    if (cost < least) best = inputs, least = cost;
  }
  return best;
}

uint32_t WinogradConv::count_tiles(const ConvShape& shape) const {
  const TileGrid grid(shape, layout_.inputs);
  return static_cast<uint32_t>(shape.batch *
                               Partition(shape, grid, layout_.num_products(), tiles_).count());
}

size_t WinogradConv::scratch_bytes() const {
  return static_cast<size_t>(layout_.num_products() * tiles_at_once() *
                             (depth() + tiles_.panel_width())) *
         sizeof(float);
}

void WinogradConv::run_tile(const BlockedConv::Call& call, uint32_t tile, void* scratch) const {
  const ConvShape& s = *call.shape;
  EDDY_DCHECK(s.group == 1 && s.channels == layout_.channels && s.filters == layout_.filters &&
              s.grid.axes[0].kernel == layout_.window)
      << "packed for another shape";
  EDDY_DCHECK(scratch != nullptr) << "no scratch memory";
  const TileGrid grid(s, layout_.inputs);
  const Partition parts(s, grid, layout_.num_products(), tiles_);
  const int64_t image = tile / parts.count(), rest = tile % parts.count();
  EDDY_DCHECK(image < s.batch) << "tile " << tile << " of " << count_tiles(s);
  const Span band = part_of(grid.count(), parts.bands, rest / parts.sets);
  const Span vectors = parts.set(rest % parts.sets);
  WinogradPart(*this, call, image, static_cast<float*>(scratch)).run(band, vectors);
}

void WinogradConv::run_vectors(const BlockedConv::Call& call, int64_t first, int64_t end,
                               void* scratch) const {
  const Span all{0, TileGrid(*call.shape, layout_.inputs).count()};
  WinogradPart(*this, call, 0, static_cast<float*>(scratch)).run(all, {first, end});
}

}  // namespace eddy::cpu
