#include "ops/cpu/blocked/blocked_conv.h"

#include <algorithm>
#include <array>
#include <string>

#include "ops/cpu/blocked/block_plane.h"
#include "ops/cpu/blocked/conv_partition.h"
#include "ops/cpu/packing/pack_bytes.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

constexpr int64_t kMaxRuns = 64;
// Rows of a panel that stay in the first-level cache while positions pass.
constexpr int64_t kDepthBlock = 128;
// Output positions whose input stays in the second-level cache while panels pass.
constexpr int64_t kPositionBlock = 384;

}  // namespace

// One part of a call: a band of one image's positions by some panels of filters of one group.
class BlockedConvPart {
 public:
  // `x`: of the image's group.
  BlockedConvPart(const BlockedConv& conv, const BlockedConv::Call& call, const ConvPlane& plane,
                  const float* x, int64_t image, int64_t group)
      : conv_(conv), call_(call), plane_(plane), tiles_(conv.tiles_) {
    const int64_t in_size = plane.in_rows * plane.in_columns;
    const int64_t out_size = plane.out_rows * plane.out_columns;
    const int64_t y_blocks = conv.groups_ * div_up(conv.layout_.filters, tiles_.width);
    x_block_ = in_size * conv.layout_.block;
    y_block_ = out_size * tiles_.width;
    x_ = x;
    const int64_t first_y = image * y_blocks + group * (y_blocks / conv.groups_);
    y_ = call.y + first_y * y_block_;
    add_ = call.add_or_null ? call.add_or_null + first_y * y_block_ : nullptr;
    bias_ = conv.bias_.empty() ? nullptr : conv.bias_.data() + group * conv.layout_.filters;
    group_ = group;
    tile_.a = a_.data();
    tile_.b = b_.data();
    tile_.c_vector = y_block_;
    tile_.b_row = tiles_.panel_width();
    const int64_t depth = conv.layout_.taps * conv.layout_.block;
    piece_ = piece_of(conv.layout_);
    chunk_ = std::clamp<int64_t>(kDepthBlock / std::max<int64_t>(depth, 1), 1,
                                 std::max<int64_t>(kMaxRuns / runs_of_block(), 1));
  }

  // The image has more positions than the call, and Y begins with a panel.
  void set_strides(int64_t x_block, int64_t panel) {
    x_block_ = x_block;
    y_vector_ = panel * tiles_.max_vectors;
  }

  void run(Span band, Span panels) {
    const int64_t row = plane_.is_line() ? 1 : plane_.out_columns;
    const int64_t step = std::max<int64_t>(kPositionBlock / row, 1);
    const int64_t parts = div_up(band.size(), step);
    for (int64_t i = 0; i < parts; ++i) {
      const Span some = part_of(band.size(), parts, i);
      for (int64_t p = panels.begin; p < panels.end; ++p) {
        run_panel({band.begin + some.begin, band.begin + some.end}, p);
      }
    }
  }

 private:
  // Channels of a run: a block's, or half of these where the last block is at most half full and
  // windows have one tap.
  static int64_t piece_of(const BlockedConv::Layout& layout) {
    const int64_t rest = layout.channels % layout.block, half = layout.block / 2;
    return layout.taps == 1 && layout.block % 2 == 0 && rest > 0 && rest <= half ? half
                                                                                 : layout.block;
  }
  // Contiguous runs of taps of one block of channels.
  bool joins() const { return plane_.columns.dilation == 1; }
  int64_t runs_of_block() const {
    return plane_.rows.kernel * (joins() ? 1 : plane_.columns.kernel) *
           (conv_.layout_.block / piece_);
  }

  void run_panel(Span band, int64_t panel) {
    const int64_t vectors = div_up(conv_.layout_.filters, tiles_.width);
    const int64_t first = panel * tiles_.max_vectors;
    num_vectors_ = std::min<int64_t>(tiles_.max_vectors, vectors - first);
    tile_.columns = static_cast<int>(num_vectors_) * tiles_.width;
    weights_ = conv_.panel(group_, panel);
    panel_y_ = y_ + (first - y_vector_) * y_block_;
    panel_add_ = add_ ? add_ + first * y_block_ : nullptr;
    for (int64_t block = 0; block < conv_.layout_.num_blocks(); block += chunk_) {
      blocks_ = {block, std::min(block + chunk_, conv_.layout_.num_blocks())};
      ahead_ = weights_at(blocks_.end, 0);
      ahead_end_ = std::min(ahead_ + (ahead_ - weights_at(block, 0)), conv_.weights_end());
      tile_.bias_or_null = bias_ && block == 0 ? bias_ + first * tiles_.width : nullptr;
      tile_.clamp_or_null =
          blocks_.end == conv_.layout_.num_blocks() ? call_.clamp_or_null : nullptr;
      run_chunk(band);
    }
  }

  void run_chunk(Span band) {
    if (plane_.is_line()) return run_line(band);
    const Span inner = inner_outputs(plane_.columns, plane_.in_columns, plane_.out_columns);
    for (int64_t row = band.begin; row < band.end; ++row) {
      set_runs(live_taps(plane_.rows, plane_.in_rows, row), {0, plane_.columns.kernel});
      run_strip(row, inner.begin, inner.size(), plane_.columns.stride, 0, 1);
    }
    for (int64_t column = 0; column < inner.begin; ++column) run_column(band, column);
    for (int64_t column = inner.end; column < plane_.out_columns; ++column) {
      run_column(band, column);
    }
  }

  // Rows of one line, or all positions of windows of one element.
  void run_line(Span band) {
    const Span rows = live_taps(plane_.rows, plane_.in_rows, 0);
    const Span inner = inner_outputs(plane_.columns, plane_.in_columns, plane_.out_columns);
    for (int64_t at = band.begin; at < band.end;) {
      const bool is_inner = at >= inner.begin && at < inner.end;
      const int64_t end = is_inner ? std::min(band.end, inner.end) : at + 1;
      set_runs(rows, is_inner ? Span{0, plane_.columns.kernel}
                              : live_taps(plane_.columns, plane_.in_columns, at));
      run_strip(0, at, end - at, plane_.columns.stride, 0, 1);
      at = end;
    }
  }

  // A column of positions whose windows reach into the padding: neighbours with the same taps are
  // those of the next rows.
  void run_column(Span band, int64_t column) {
    const Span taps = live_taps(plane_.columns, plane_.in_columns, column);
    for (int64_t row = band.begin; row < band.end;) {
      const Span rows = live_taps(plane_.rows, plane_.in_rows, row);
      int64_t end = row + 1;
      while (end < band.end && live_taps(plane_.rows, plane_.in_rows, end) == rows) ++end;
      set_runs(rows, taps);
      run_strip(row, column, end - row, 0, plane_.rows.stride, plane_.out_columns);
      row = end;
    }
  }

  // The runs of taps of the current blocks.
  void set_runs(Span rows, Span columns) {
    num_runs_ = 0;
    if (piece_ < conv_.layout_.block) return set_pieces(rows.size() * columns.size());
    tile_.depth = (joins() ? columns.size() : 1) * conv_.layout_.block;
    const int64_t last = joins() ? columns.begin + (columns.size() > 0 ? 1 : 0) : columns.end;
    for (int64_t block = blocks_.begin; block < blocks_.end; ++block) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        for (int64_t c = columns.begin; c < last; ++c) {
          const auto at = static_cast<size_t>(num_runs_++);
          EDDY_DCHECK(num_runs_ <= kMaxRuns) << "more than " << kMaxRuns << " runs of taps";
          offsets_[at] = block * x_block_ + (r * plane_.rows.dilation * plane_.in_columns +
                                             c * plane_.columns.dilation) *
                                                conv_.layout_.block;
          const int64_t tap = r * plane_.columns.kernel + c;
          b_[at] = weights_at(block, tap);
        }
      }
    }
    tile_.num_segments = num_runs_;
  }

  // Of the channels that there are, if the window's tap lies inside the image.
  void set_pieces(int64_t num_taps) {
    tile_.depth = piece_;
    const int64_t block = conv_.layout_.block;
    const int64_t end = std::min(blocks_.end * block, conv_.layout_.channels);
    for (int64_t c = blocks_.begin * block; c < end && num_taps > 0; c += piece_) {
      const auto at = static_cast<size_t>(num_runs_++);
      EDDY_DCHECK(num_runs_ <= kMaxRuns) << "more than " << kMaxRuns << " runs of channels";
      offsets_[at] = c / block * x_block_ + c % block;
      b_[at] = weights_at(c / block, 0) + c % block * tiles_.panel_width();
    }
    tile_.num_segments = num_runs_;
  }

  // `count` positions from (row, column); the next one is `column_step` columns and `row_step`
  // rows of input further, and `y_step` positions of output.
  void run_strip(int64_t row, int64_t column, int64_t count, int64_t column_step, int64_t row_step,
                 int64_t y_step) {
    const int64_t in_row = row * plane_.rows.stride - plane_.rows.pad_begin;
    const int64_t in_column = column * plane_.columns.stride - plane_.columns.pad_begin;
    const float* x = x_ + (in_row * plane_.in_columns + in_column) * conv_.layout_.block;
    tile_.a_row = (row_step * plane_.in_columns + column_step) * conv_.layout_.block;
    tile_.c_row = y_step * tiles_.width;
    const int64_t y_at = (row * plane_.out_columns + column) * tiles_.width;
    int rows = 0;
    for (int64_t i = 0; i < count; i += rows) {
      rows = tiles_.next_rows(count - i, num_vectors_, tile_);
      for (int64_t s = 0; s < num_runs_; ++s) {
        const auto at = static_cast<size_t>(s);
        a_[at] = x + i * tile_.a_row + offsets_[at];
      }
      const int64_t y = y_at + i * tile_.c_row;
      tile_.c = panel_y_ + y;
      tile_.add_or_null = blocks_.begin > 0 ? tile_.c : (panel_add_ ? panel_add_ + y : nullptr);
      fetch_ahead(rows);
      tiles_.run(tile_, rows, num_vectors_);
      if (call_.activation_or_null != nullptr && blocks_.end == conv_.layout_.num_blocks()) {
        activate(tile_.c, rows);
      }
    }
  }

  const float* weights_at(int64_t block, int64_t tap) const {
    return weights_ +
           (block * conv_.layout_.taps + tap) * conv_.layout_.block * tiles_.panel_width();
  }

  // The weights of the next chunk, or of the next panel, lie behind those of this one: each tile
  // fetches a part.
  void fetch_ahead(int64_t rows) {
    const bool is_fetching = ahead_ < ahead_end_;
    tile_.ahead_or_null = is_fetching ? ahead_ : nullptr;
    if (!is_fetching) return;
    ahead_ += num_runs_ * tile_.depth * lines_ahead(rows, tile_.columns) * kLineFloats;
  }

  // What a tile has just stored.
  void activate(float* y, int64_t count) const {
    const bool is_run = tile_.c_row == tiles_.width;
    for (int64_t v = 0; v < num_vectors_; ++v, y += y_block_) {
      if (is_run) {
        call_.activation_or_null->apply(y, count * tiles_.width);
        continue;
      }
      for (int64_t i = 0; i < count; ++i) {
        call_.activation_or_null->apply(y + i * tile_.c_row, tiles_.width);
      }
    }
  }

  const BlockedConv& conv_;
  const BlockedConv::Call& call_;
  const ConvPlane& plane_;
  const TileKernels& tiles_;
  int64_t group_ = 0;
  const float *x_, *add_, *bias_;
  float* y_;
  int64_t x_block_, y_block_;  // floats from one block of channels to the next
  int64_t y_vector_ = 0;       // of filters, with which y_ begins
  int64_t piece_;              // channels of a run
  int64_t chunk_;              // blocks of channels whose sums are taken at once
  // Of the panel and the chunk at hand.
  Span blocks_;
  int64_t num_vectors_ = 0;
  const float *weights_ = nullptr, *panel_add_ = nullptr;
  const float *ahead_ = nullptr, *ahead_end_ = nullptr;  // what is still to be fetched
  float* panel_y_ = nullptr;
  TileArgs tile_;
  int64_t num_runs_ = 0;
  std::array<int64_t, kMaxRuns> offsets_;
  std::array<const float*, kMaxRuns> a_, b_;
};

namespace {

BlockedConv::Layout layout_of(const TensorView& weights, int64_t group, int64_t block,
                              const TileKernels& tiles) {
  EDDY_CHECK(weights.rank == 4 && group > 0 && weights.dims[0] % group == 0)
      << weights.dims[0] << " filters in " << group << " groups";
  EDDY_CHECK(weights.dims[2] <= kMaxRuns) << weights.dims[2] << " rows of taps";
  return {.filters = weights.dims[0] / group,
          .channels = weights.dims[1],
          .taps = weights.dims[2] * weights.dims[3],
          .block = block,
          .panel_width = tiles.panel_width()};
}

}  // namespace

BlockedConv::BlockedConv(const TensorView& weights, const float* bias_or_null, int64_t group,
                         int64_t x_block, const TileKernels& tiles, const KernelInit* init_or_null)
    : tiles_(tiles), groups_(group), layout_(layout_of(weights, group, x_block, tiles)) {
  EDDY_CHECK(group == 1 || (layout_.channels % x_block == 0 && layout_.filters % tiles.width == 0))
      << "groups of " << layout_.channels << " channels and " << layout_.filters << " filters";
  EDDY_CHECK(layout_.taps > 0) << layout_.taps << " taps";
  set_bias(bias_or_null);
  const int64_t count = groups_ * layout_.count();
  const std::string name = "blocked conv " + to_string(Dims(weights.shape())) + " group " +
                           std::to_string(group) + " block " + std::to_string(x_block);
  const auto fill = [&](std::byte* to) {
    const int64_t of_group = layout_.filters * layout_.channels * layout_.taps;
    for (int64_t g = 0; g < groups_; ++g) {
      for (int64_t part = 0; part < layout_.num_parts(); ++part) {
        layout_.pack(weights.as<float>() + g * of_group,
                     reinterpret_cast<float*>(to) + g * layout_.count(), part);
      }
    }
  };
  weights_ = pack_bytes(init_or_null, weights.data, name,
                        static_cast<size_t>(count) * sizeof(float), fill);
  EDDY_CHECK(weights_ != nullptr) << "out of memory packing " << count << " weights";
}

BlockedConv::BlockedConv(const Layout& layout, const float* packed, const float* bias_or_null)
    : tiles_(tile_kernels()),
      groups_(1),
      layout_(layout),
      weights_(PackedMemory(), reinterpret_cast<const std::byte*>(packed)) {
  EDDY_DCHECK(layout.panel_width == tiles_.panel_width()) << "panels of " << layout.panel_width;
  set_bias(bias_or_null);
}

void BlockedConv::set_bias(const float* bias_or_null) {
  if (bias_or_null == nullptr) return;
  const int64_t filters = groups_ * layout_.filters;
  bias_.assign(static_cast<size_t>(div_up(filters, tiles_.width) * tiles_.width), 0.0f);
  std::copy_n(bias_or_null, filters, bias_.begin());
}

void BlockedConv::Layout::pack(const float* from, float* to, int64_t part) const {
  EDDY_DCHECK(part >= 0 && part < num_parts()) << "part " << part << " of " << num_parts();
  const int64_t first = part / channels * panel_width, channel = part % channels;
  const int64_t columns = std::min(panel_width, filters - first);
  to += part / channels * depth() * panel_width;
  const auto rows_of = [&](int64_t c) {
    return to + (c / block * taps * block + c % block) * panel_width;
  };
  transpose_words(from + (first * channels + channel) * taps, channels * taps, rows_of(channel),
                  block * panel_width, taps, columns);
  for (int64_t tap = 0; tap < taps && columns < panel_width; ++tap) {
    std::fill_n(rows_of(channel) + tap * block * panel_width + columns, panel_width - columns,
                0.0f);
  }
  if (channel + 1 < channels) return;
  for (int64_t c = channels; c < num_blocks() * block; ++c) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      std::fill_n(rows_of(c) + tap * block * panel_width, panel_width, 0.0f);
    }
  }
}

namespace {

// Each part of a call whose positions are gathered gathers its own.
constexpr int64_t kMaxGatheredParts = 16;

}  // namespace

uint32_t BlockedConv::count_tiles(const ConvShape& shape) const {
  const bool gathers = scratch_bytes(shape) > 0;
  const ConvShape s = gathers ? gathered(shape) : shape;
  const int64_t most = gathers ? kMaxGatheredParts : kMaxConvParts;
  return static_cast<uint32_t>(ConvPartition(s, ConvPlane(s), num_panels(), most).count());
}

size_t BlockedConv::scratch_bytes(const ConvShape& shape) const {
  constexpr int64_t kMostBytes = 1 << 20;  // stays in the second-level cache
  if (!is_sparse(shape)) return 0;
  const int64_t bytes = layout_.num_blocks() * layout_.block * shape.grid.output_size *
                        static_cast<int64_t>(sizeof(float));
  return bytes <= kMostBytes ? static_cast<size_t>(bytes) : 0;
}

const float* BlockedConv::image_of(const Call& call, int64_t image, int64_t group) const {
  const int64_t blocks = layout_.num_blocks();
  return call.x + (image * groups_ + group) * blocks * call.shape->grid.input_size * layout_.block;
}

// The positions of the band, where they are in the image over all positions that are read.
void BlockedConv::gather(const ConvShape& shape, const float* x, int64_t first, int64_t end,
                         float* to) const {
  const Grid& grid = shape.grid;
  const int64_t block = layout_.block;
  for (int64_t b = 0; b < layout_.num_blocks(); ++b) {
    const float* const from = x + b * grid.input_size * block;
    float* const of_block = to + b * grid.output_size * block;
    for (int64_t at = first; at < end; ++at) {
      const int64_t row = at / grid.output[1] * grid.axes[0].stride;
      const int64_t column = at % grid.output[1] * grid.axes[1].stride;
      std::copy_n(from + (row * grid.input[1] + column) * block, block, of_block + at * block);
    }
  }
}

void BlockedConv::run_tile(const Call& call, uint32_t tile, void* scratch_or_null) const {
  const ConvShape& given = *call.shape;
  EDDY_DCHECK(given.group == groups_ && given.group_channels() == layout_.channels &&
              given.group_filters() == layout_.filters)
      << "packed for another shape";
  const bool gathers = scratch_bytes(given) > 0;
  EDDY_DCHECK(!gathers || scratch_or_null != nullptr) << "no memory to gather positions in";
  const ConvShape s = gathers ? gathered(given) : given;
  const ConvPlane plane(s);
  const ConvPartition parts(s, plane, num_panels(), gathers ? kMaxGatheredParts : kMaxConvParts);
  const auto [in_band, panel_set, image, group] = parts.place_of(tile);
  const Span panels = part_of(num_panels(), parts.panel_sets, panel_set);
  const int64_t units = plane.is_line() ? plane.out_columns : plane.out_rows;
  const Span band = part_of(units, parts.bands, in_band);
  const float* x = image_of(call, image, group);
  if (gathers) {
    auto* const to = static_cast<float*>(scratch_or_null);
    gather(given, x, band.begin, band.end, to);
    x = to;
  }
  BlockedConvPart(*this, call, plane, x, image, group).run(band, panels);
}

void BlockedConv::run_panels(const Call& call, int64_t first, int64_t end) const {
  EDDY_DCHECK(call.shape->batch == 1 && groups_ == 1 && end <= num_panels())
      << "panels " << first << " to " << end << " of " << num_panels();
  const ConvPlane plane(*call.shape);
  BlockedConvPart part(*this, call, plane, call.x, 0, 0);
  part.run({0, plane.is_line() ? plane.out_columns : plane.out_rows}, {first, end});
}

void BlockedConv::run_rows(const Call& call, int64_t image, int64_t panel, int64_t first,
                           int64_t end) const {
  ConvPlane plane(*call.shape);
  EDDY_DCHECK(plane.is_line() && groups_ == 1 && call.add_or_null == nullptr)
      << "no windows of one element";
  EDDY_DCHECK(first <= end && end <= call.shape->grid.input[0] && panel < num_panels())
      << "rows " << first << " to " << end << ", panel " << panel;
  const int64_t columns = call.shape->grid.input[1], count = (end - first) * columns;
  plane.in_columns = plane.out_columns = count;
  const float* const x = image_of(call, image, 0) + first * columns * layout_.block;
  BlockedConvPart part(*this, call, plane, x, 0, 0);
  part.set_strides(call.shape->grid.input_size * layout_.block, panel);
  part.run({0, count}, {panel, panel + 1});
}

}  // namespace eddy::cpu
