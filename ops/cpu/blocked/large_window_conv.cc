#include "ops/cpu/blocked/large_window_conv.h"

#include <algorithm>

#include "ops/cpu/tile/tile.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

constexpr int64_t kMaxUnits = 32;
constexpr int64_t kPanelBytes = int64_t{128} << 10;  // in the second-level cache
constexpr int64_t kMaxSegments = 512;

}  // namespace

// Of one unit: sums by position and filter, and the segments of a tile.
struct LargeWindowConv::Work {
  Span lines;
  float* sums;  // [line][column][filter of all panels]
  const float** a;
  const float** b;
};

bool LargeWindowConv::suits(const ConvShape& shape) {
  constexpr int64_t kMinTaps = 64, kMinColumns = 4, kMinRow = 8, kMaxPositions = 144;
  return shape.grid.rank == 2 && shape.group == 1 && shape.channels > 0 && shape.batch > 0 &&
         shape.filters >= tile_kernels().width / 2 && shape.grid.input_size > 0 &&
         shape.grid.kernel_size >= kMinTaps && shape.grid.axes[1].kernel >= kMinRow &&
         shape.grid.output[1] >= kMinColumns && shape.grid.output_size <= kMaxPositions;
}

LargeWindowConv::LargeWindowConv(const ConvShape& shape)
    : TwoStepConv(shape),
      rows_(shape.grid.axes[0], shape.grid.input[0], shape.grid.output[0]),
      columns_(shape.grid.axes[1], shape.grid.input[1], shape.grid.output[1]) {
  EDDY_DCHECK(suits(shape)) << "not for these tiles";
  const TileKernels& tiles = tile_kernels();
  panel_width_ =
      std::min<int64_t>(tiles.max_vectors, div_up(shape.filters, tiles.width)) * tiles.width;
  const int64_t of_row = shape.grid.axes[1].kernel * panel_width_ * int64_t{sizeof(float)};
  segments_each_ = std::clamp<int64_t>(kPanelBytes / of_row, 1, kMaxSegments);
  num_units_ = std::min(shape.batch * shape.grid.output[0], kMaxUnits);
}

size_t LargeWindowConv::scratch_bytes() const {
  const int64_t lines = div_up(shape_.batch * shape_.grid.output[0], num_units_);
  const int64_t sums = lines * shape_.grid.output[1] * num_panels() * panel_width_;
  return static_cast<size_t>(sums) * sizeof(float) +
         2 * static_cast<size_t>(segments_each_) * sizeof(const float*);
}

void LargeWindowConv::pad_plane(const float* x, float* to) const {
  const int64_t width = shape_.grid.input[1];
  to = std::fill_n(to, rows_.left * columns_.size, 0.0f);
  for (int64_t row = 0; row < rows_.count; ++row) {
    to = std::fill_n(to, columns_.left, 0.0f);
    to = std::copy_n(x + row * width, columns_.count, to);
    to = std::fill_n(to, columns_.right(), 0.0f);
  }
  std::fill_n(to, rows_.right() * columns_.size, 0.0f);
}

void LargeWindowConv::prepare(const Call& call, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  auto* const packed = static_cast<float*>(call.shared);
  const int64_t taps = shape_.grid.kernel_size, channels = shape_.channels;
  const Span parts = part_of(num_panels() * channels, num_units_, unit);
  for (int64_t part = parts.begin; part < parts.end; ++part) {
    const int64_t first = part / channels * panel_width_, channel = part % channels;
    const int64_t filters = std::min(panel_width_, shape_.filters - first);
    float* const to = packed + panel_at(part / channels, channel);
    if (filters < panel_width_) std::fill_n(to, taps * panel_width_, 0.0f);
    const float* const from = call.weights + (first * channels + channel) * taps;
    transpose_words(from, channels * taps, to, panel_width_, taps, filters);
  }
  const Span planes = part_of(shape_.batch * channels, num_units_, unit);
  for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
    pad_plane(call.x + plane * shape_.grid.input_size,
              packed + packed_floats() + plane * plane_floats());
  }
}

void LargeWindowConv::run(const Call& call, void* scratch, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  Work work{.lines = lines_of(unit), .sums = static_cast<float*>(scratch), .a = {}, .b = {}};
  const int64_t out_rows = shape_.grid.output[0], out_columns = shape_.grid.output[1];
  const int64_t width = num_panels() * panel_width_;
  work.a = reinterpret_cast<const float**>(work.sums + div_up(shape_.batch * out_rows, num_units_) *
                                                           out_columns * width);
  work.b = work.a + segments_each_;
  const int64_t segments = shape_.channels * shape_.grid.axes[0].kernel;
  for (int64_t first = 0; first < segments; first += segments_each_) {
    const Span some{first, std::min(first + segments_each_, segments)};
    for (int64_t panel = 0; panel < num_panels(); ++panel) run_segments(call, work, panel, some);
  }
  for (int64_t line = work.lines.begin; line < work.lines.end; ++line) {
    const float* const from = work.sums + (line - work.lines.begin) * out_columns * width;
    float* const to = call.y + line / out_rows * shape_.filters * shape_.grid.output_size +
                      line % out_rows * out_columns;
    for (int64_t f = 0; f < shape_.filters; ++f) {
      const float bias = call.bias_or_null ? call.bias_or_null[f] : 0.0f;
      for (int64_t j = 0; j < out_columns; ++j) {
        to[f * shape_.grid.output_size + j] = from[j * width + f] + bias;
      }
    }
  }
}

void LargeWindowConv::run_segments(const Call& call, const Work& work, int64_t panel,
                                   Span segments) const {
  const TileKernels& tiles = tile_kernels();
  const WindowAxis &down = shape_.grid.axes[0], &along = shape_.grid.axes[1];
  const int64_t out_rows = shape_.grid.output[0], out_columns = shape_.grid.output[1];
  const int64_t width = num_panels() * panel_width_;
  const auto* const packed = static_cast<const float*>(call.shared);
  const float* const images = packed + packed_floats();
  TileArgs tile;
  tile.a = work.a;
  tile.b = work.b;
  tile.num_segments = segments.size();
  tile.depth = along.kernel;
  tile.a_row = along.stride;
  tile.a_step = along.dilation;
  tile.b_row = panel_width_;
  tile.c_row = width;
  tile.columns = static_cast<int>(panel_width_);
  for (int64_t s = 0; s < tile.num_segments; ++s) {
    work.b[s] = packed + panel_at(panel, 0) + (segments.begin + s) * along.kernel * panel_width_;
  }
  const int vectors = tile.columns / tiles.width;
  for (int64_t line = work.lines.begin; line < work.lines.end; ++line) {
    const float* const first =
        images + line / out_rows * image_floats() + line % out_rows * down.stride * columns_.size;
    float* const sums =
        work.sums + (line - work.lines.begin) * out_columns * width + panel * panel_width_;
    int rows = 0;
    for (int64_t i = 0; i < out_columns; i += rows) {
      rows = tiles.next_rows(out_columns - i, vectors, tile);
      const float* const at = first + i * along.stride;
      int64_t channel = segments.begin / down.kernel, row = segments.begin % down.kernel;
      for (int64_t s = 0; s < tile.num_segments; ++s) {
        work.a[s] = at + channel * plane_floats() + row * down.dilation * columns_.size;
        if (++row == down.kernel) row = 0, ++channel;
      }
      tile.c = sums + i * width;
      tile.add_or_null = segments.begin > 0 ? tile.c : nullptr;
      tiles.run(tile, rows, vectors);
    }
  }
}

}  // namespace eddy::cpu
