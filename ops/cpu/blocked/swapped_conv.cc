#include "ops/cpu/blocked/swapped_conv.h"

#include <algorithm>

#include "ops/cpu/tile/tile.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

constexpr int64_t kBlockFloats = int64_t{32} << 10;  // of packed windows, in the second-level cache
constexpr int64_t kSumFloats = int64_t{256} << 10;   // of all parts of channels, about
constexpr int64_t kMaxParts = 8, kWantedUnits = 16;
constexpr int64_t kMaxSegments = 512;
constexpr int64_t kMaxImages = 12;  // that are padded for a tile

// Windows as large as the images are one row.
ConvShape flattened(ConvShape shape) {
  Grid& grid = shape.grid;
  for (size_t i = 0; i < 2; ++i) {
    const WindowAxis& axis = grid.axes[i];
    const bool is_whole = axis.kernel == grid.input[i] && axis.dilation == 1 &&
                          axis.pad_begin == 0 && grid.output[i] == 1;
    if (!is_whole) return shape;
  }
  grid.axes[0].kernel = grid.input[0] = 1;
  grid.axes[1].kernel = grid.input[1] = grid.input_size;
  return shape;
}

int64_t panel_width_of(const ConvShape& shape) {
  const TileKernels& tiles = tile_kernels();
  return std::min<int64_t>(tiles.max_vectors, div_up(shape.filters, tiles.width)) * tiles.width;
}

}  // namespace

bool SwappedConv::suits(const ConvShape& shape) {
  return shape.grid.rank == 2 && shape.group == 1 && shape.channels > 0 && shape.batch > 0 &&
         shape.filters > 0 && shape.grid.kernel_size > 0 && shape.grid.input_size > 0 &&
         shape.grid.output_size > 0;
}

SwappedConv::SwappedConv(const ConvShape& shape)
    : TwoStepConv(flattened(shape)),
      panel_width_(panel_width_of(shape)),
      panels_(div_up(shape.filters, panel_width_)),
      is_by_images_(shape.batch >= shape.grid.output[1]) {
  EDDY_DCHECK(suits(shape)) << "not for these tiles";
  const int64_t rows = axis(0).kernel;
  columns_each_ = std::min(axis(1).kernel, kBlockFloats / panel_width_);
  const int64_t segments =
      std::clamp<int64_t>(kBlockFloats / (columns_each_ * panel_width_), 1, kMaxSegments);
  rows_each_ = std::min(rows, segments);
  channels_each_ = std::clamp<int64_t>(segments / rows, 1, shape.channels);
  const int64_t most_parts = std::min(shape.channels, kMaxParts);
  channel_parts_ = std::clamp<int64_t>(kSumFloats / (panels_ * panel_floats()), 1, most_parts);
  image_parts_ = std::clamp<int64_t>(kWantedUnits / (channel_parts_ * panels_), 1,
                                     div_up(shape.batch, kMaxImages));
}

int64_t SwappedConv::max_padded_floats() const {
  return channels_each_ * (is_by_images_ ? kMaxImages : 1) * reach(0, rows_each_) *
         reach(1, columns_each_);
}

size_t SwappedConv::scratch_bytes() const {
  const int64_t segments = channels_each_ * rows_each_;
  return static_cast<size_t>(segments * columns_each_ * panel_width_ + max_padded_floats()) *
             sizeof(float) +
         static_cast<size_t>(2 * segments + 1) * sizeof(const float*);
}

void SwappedConv::prepare(const Call& call, void* scratch, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  const int64_t panel = unit / image_parts_ % panels_;
  const int64_t part = unit / image_parts_ / panels_;
  const int64_t segments = channels_each_ * rows_each_;
  Work work;
  work.channels = part_of(shape_.channels, channel_parts_, part);
  work.images = part_of(shape_.batch, image_parts_, unit % image_parts_);
  work.first_filter = panel * panel_width_;
  work.filters = std::min(panel_width_, shape_.filters - work.first_filter);
  work.sums = static_cast<float*>(call.shared) + (part * panels_ + panel) * panel_floats();
  work.a = static_cast<const float**>(scratch);
  work.b = work.a + segments;
  work.packed = reinterpret_cast<float*>(work.b + segments);
  work.padded = work.packed + segments * columns_each_ * panel_width_;
  work.is_first = true;
  for (int64_t column = 0; column < axis(1).kernel; column += columns_each_) {
    work.window_columns = {column, std::min(column + columns_each_, axis(1).kernel)};
    for (int64_t c = work.channels.begin; c < work.channels.end; c += channels_each_) {
      work.some = {c, std::min(c + channels_each_, work.channels.end)};
      for (int64_t row = 0; row < axis(0).kernel; row += rows_each_) {
        work.window_rows = {row, std::min(row + rows_each_, axis(0).kernel)};
        add_block(call, work);
        work.is_first = false;
      }
    }
  }
}

// [segment][column][filter of the panel]; filters beyond the last one are 0.
void SwappedConv::pack_block(const Call& call, const Work& work) const {
  const int64_t taps = shape_.grid.kernel_size, columns = work.window_columns.size();
  const int64_t rows = work.window_rows.size();
  const bool are_whole = columns == axis(1).kernel;  // rows follow each other
  const int64_t steps = are_whole ? 1 : rows, count = are_whole ? rows * columns : columns;
  float* to = work.packed;
  for (int64_t c = work.some.begin; c < work.some.end; ++c) {
    const float* from = call.weights + (c * shape_.filters + work.first_filter) * taps +
                        work.window_rows.begin * axis(1).kernel + work.window_columns.begin;
    for (int64_t step = 0; step < steps; ++step) {
      if (work.filters < panel_width_) std::fill_n(to, count * panel_width_, 0.0f);
      transpose_words(from, taps, to, panel_width_, count, work.filters);
      from += axis(1).kernel;
      to += count * panel_width_;
    }
  }
}

// The rows and columns of an image that the block's windows read at all positions.
void SwappedConv::pad_plane(const float* x, const Work& work, float* to) const {
  const auto first = [&](size_t i, int64_t tap) {
    return tap * axis(i).dilation - axis(i).pad_begin;
  };
  const int64_t height = reach(0, work.window_rows.size());
  const int64_t width = reach(1, work.window_columns.size());
  const int64_t top = first(0, work.window_rows.begin), left = first(1, work.window_columns.begin);
  const int64_t begin = std::clamp<int64_t>(-left, 0, width);
  const int64_t end = std::clamp<int64_t>(shape_.grid.input[1] - left, begin, width);
  for (int64_t row = 0; row < height; ++row, to += width) {
    if (top + row < 0 || top + row >= shape_.grid.input[0]) {
      std::fill_n(to, width, 0.0f);
      continue;
    }
    const int64_t from = (top + row) * shape_.grid.input[1] + left + begin;
    std::fill_n(to, begin, 0.0f);
    if (begin < end) std::copy_n(x + from, end - begin, to + begin);
    std::fill(to + end, to + width, 0.0f);
  }
}

void SwappedConv::add_block(const Call& call, const Work& work) const {
  pack_block(call, work);
  const int64_t plane = reach(0, work.window_rows.size()) * reach(1, work.window_columns.size());
  const int64_t most = is_by_images_ ? kMaxImages : 1;
  int64_t count = 0;
  for (int64_t image = work.images.begin; image < work.images.end; image += count) {
    count = std::min(most, work.images.end - image);
    float* to = work.padded;
    for (int64_t c = work.some.begin; c < work.some.end; ++c) {
      for (int64_t i = image; i < image + count; ++i, to += plane) {
        pad_plane(call.x + (c * shape_.batch + i) * shape_.grid.input_size, work, to);
      }
    }
    EDDY_DCHECK(to - work.padded <= max_padded_floats()) << "no room for the images of a tile";
    add_tiles(work, image, count);
  }
}

void SwappedConv::add_tiles(const Work& work, int64_t image, int64_t num_images) const {
  const TileKernels& tiles = tile_kernels();
  const int64_t width = reach(1, work.window_columns.size());
  const int64_t plane = reach(0, work.window_rows.size()) * width;
  const int64_t size = shape_.grid.output_size, columns = shape_.grid.output[1];
  TileArgs tile;
  tile.a = work.a;
  tile.b = work.b;
  tile.num_segments = work.some.size() * work.window_rows.size();
  tile.depth = work.window_columns.size();
  tile.a_row = is_by_images_ ? plane : axis(1).stride;
  tile.a_step = axis(1).dilation;
  tile.b_row = panel_width_;
  tile.c_row = (is_by_images_ ? size : 1) * panel_width_;
  tile.columns = static_cast<int>(panel_width_);
  for (int64_t s = 0; s < tile.num_segments; ++s) {
    work.b[s] = work.packed + s * tile.depth * panel_width_;
  }
  const int64_t vectors = panel_width_ / tiles.width;
  const auto run = [&](int64_t first_image, int64_t position, int rows) {
    const int64_t down = position / columns, along = position % columns;
    const float* at =
        work.padded + first_image * plane + down * axis(0).stride * width + along * axis(1).stride;
    const float** a = work.a;
    for (int64_t c = 0; c < work.some.size(); ++c, at += num_images * plane) {
      for (int64_t row = 0; row < work.window_rows.size(); ++row) {
        *a++ = at + row * axis(0).dilation * width;
      }
    }
    tile.c = work.sums + ((image + first_image) * size + position) * panel_width_;
    tile.add_or_null = work.is_first ? nullptr : tile.c;
    tiles.run(tile, rows, vectors);
  };
  int rows = 0;
  if (is_by_images_) {
    for (int64_t i = 0; i < num_images; i += rows) {
      rows = tiles.next_rows(num_images - i, vectors, tile);
      for (int64_t position = 0; position < size; ++position) run(i, position, rows);
    }
    return;
  }
  for (int64_t i = 0; i < num_images; ++i) {
    for (int64_t position = 0; position < size; position += rows) {
      rows = tiles.next_rows(columns - position % columns, vectors, tile);
      run(i, position, rows);
    }
  }
}

void SwappedConv::run(const Call& call, void*, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  auto* const sums = static_cast<float*>(call.shared);
  const Span all = part_of(panels_ * positions(), num_units(), unit);
  for (int64_t begin = all.begin, end = 0; begin < all.end; begin = end) {
    const int64_t panel = begin / positions(), first = begin % positions();
    end = std::min((panel + 1) * positions(), all.end);
    const int64_t count = (end - begin) * panel_width_;
    float* const total = sums + begin * panel_width_;
    for (int64_t part = 1; part < channel_parts_; ++part) {
      const float* const more = total + part * panels_ * panel_floats();
      for (int64_t i = 0; i < count; ++i) total[i] += more[i];
    }
    const int64_t filter = panel * panel_width_;
    transpose_words(total, panel_width_, call.y + filter * positions() + first, positions(),
                    std::min(panel_width_, shape_.filters - filter), end - begin);
  }
}

}  // namespace eddy::cpu
