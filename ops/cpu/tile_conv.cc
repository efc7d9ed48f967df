#include "ops/cpu/tile_conv.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/packing/pack_bytes.h"

namespace eddy::cpu {
namespace {

constexpr int kMaxSegments = 64;

// The taps of one axis that some output position sees inside the input.
struct LiveTaps {
  int64_t first = 0, count = 0;
};

LiveTaps live_taps(const WindowAxis& axis, int64_t input, int64_t output) {
  LiveTaps live{0, axis.kernel};
  if (axis.pad_begin == 0 && (output - 1) * axis.stride + axis.extent() <= input) return live;
  int64_t last = -1;
  live.first = axis.kernel;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    // The nearest output positions whose tap is not left of the input.
    const int64_t offset = tap * axis.dilation - axis.pad_begin;
    const int64_t start = offset >= 0 ? 0 : (-offset + axis.stride - 1) / axis.stride;
    if (start >= output || start * axis.stride + offset >= input) continue;
    live.first = std::min(live.first, tap);
    last = tap;
  }
  live.count = last - live.first + 1;
  if (last < 0) live = {0, 0};
  return live;
}

// The convolution with dead taps gone, and the padded copy of the input it reads.
struct Problem {
  int rank;
  SpatialDims kernel{}, output{}, input{}, padded{}, first_tap{};
  std::array<WindowAxis, kMaxSpatialRank> axes{};
  int64_t channels, padded_size = 1, input_size, output_size, num_taps = 1;

  explicit Problem(const ConvShape& shape)
      : rank(shape.grid.rank),
        output(shape.grid.output),
        input(shape.grid.input),
        axes(shape.grid.axes),
        channels(shape.group_channels()),
        input_size(shape.grid.input_size),
        output_size(shape.grid.output_size) {
    for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
      const LiveTaps live = live_taps(axes[i], input[i], output[i]);
      first_tap[i] = live.first;
      kernel[i] = live.count;
      axes[i].pad_begin -= live.first * axes[i].dilation;
      const int64_t span =
          (output[i] - 1) * axes[i].stride + (live.count - 1) * axes[i].dilation + 1;
      padded[i] = std::max<int64_t>(span, 0);
      padded_size *= padded[i];
      num_taps *= live.count;
    }
    fold_pointwise();
  }

  // One tap, stride 1, no padding: positions of all axes are one row.
  void fold_pointwise() {
    for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
      if (axes[i].kernel != 1 || axes[i].stride != 1 || padded[i] != input[i]) return;
    }
    rank = 1;
    input[0] = padded[0] = output[0] = input_size;
    kernel[0] = 1;
  }

  size_t last() const { return static_cast<size_t>(rank - 1); }
  bool needs_no_copy() const {
    return rank == 1 && axes[0].pad_begin == 0 && padded[0] <= input[0] &&
           (channels == 1 || input[0] == 1);
  }
};

// Copies one row (the last axis) of every channel: to[position][channel].
void copy_row(const Problem& p, const float* x, float* to) {
  const size_t last = p.last();
  const int64_t pad = p.axes[last].pad_begin;
  const int64_t begin = std::clamp<int64_t>(pad, 0, p.padded[last]);
  const int64_t end = std::clamp<int64_t>(pad + p.input[last], begin, p.padded[last]);
  std::fill(to, to + begin * p.channels, 0.0f);
  for (int64_t c = 0; c < p.channels; ++c) {
    const float* from = x + c * p.input_size - pad;
    for (int64_t at = begin; at < end; ++at) to[at * p.channels + c] = from[at];
  }
  std::fill(to + end * p.channels, to + p.padded[last] * p.channels, 0.0f);
}

void copy_padded(const Problem& p, const float* x, float* to) {
  SpatialDims rows = p.padded;
  rows[p.last()] = 1;
  const int64_t row_size = p.padded[p.last()] * p.channels;
  for (Position row(rows, p.rank); !row.done(); row.next(), to += row_size) {
    int64_t from = 0;
    bool is_inside = true;
    for (int i = 0; i < p.rank - 1; ++i) {
      const auto at = static_cast<size_t>(i);
      const int64_t place = row[i] - p.axes[at].pad_begin;
      is_inside &= place >= 0 && place < p.input[at];
      from = from * p.input[at] + place;
    }
    if (is_inside)
      copy_row(p, x + from * p.input[p.last()], to);
    else
      std::fill(to, to + row_size, 0.0f);
  }
}

// Runs of taps that are contiguous in the padded copy and in the packed weights alike.
struct Segments {
  int64_t count = 0, depth = 0;
  std::array<int64_t, kMaxSegments> a, b;  // offsets: floats in the copy, rows of weights

  Segments(const Problem& p, const ConvShape& shape) {
    const size_t last = p.last();
    const bool joins = p.axes[last].dilation == 1 || p.kernel[last] == 1;
    SpatialDims runs = p.kernel;
    if (joins) runs[last] = std::min<int64_t>(runs[last], 1);
    depth = (joins ? p.kernel[last] : 1) * p.channels;
    for (Position run(runs, p.rank); !run.done(); run.next(), ++count) {
      EDDY_DCHECK(count < kMaxSegments) << "more than " << kMaxSegments << " runs of taps";
      int64_t place = 0, tap = 0;
      for (int i = 0; i < p.rank; ++i) {
        const auto at = static_cast<size_t>(i);
        place = place * p.padded[at] + run[i] * p.axes[at].dilation;
        tap = tap * shape.grid.kernel[at] + run[i] + p.first_tap[at];
      }
      a[static_cast<size_t>(count)] = place * p.channels;
      b[static_cast<size_t>(count)] = tap * p.channels;
    }
  }
};

int64_t num_segments(const Problem& p) {
  const bool joins = p.axes[p.last()].dilation == 1;
  return joins && p.kernel[p.last()] > 0 ? p.num_taps / p.kernel[p.last()] : p.num_taps;
}

// One group of one image: `copy` is the padded input, `y` the group's first output plane.
class GroupRun {
 public:
  GroupRun(const Problem& p, const Segments& segments, const PackedMatrix& weights,
           const float* bias_or_null, const float* copy, float* y)
      : p_(p), segments_(segments), weights_(weights), bias_(bias_or_null), copy_(copy), y_(y) {
    const size_t last = p.last();
    tile_.num_segments = segments.count;
    tile_.depth = segments.depth;
    tile_.a_row = p.axes[last].stride * p.channels;
    tile_.b_row = weights.tiles().panel_width();
    tile_.c_row = 1;
    tile_.c_column = p.output_size;
    tile_.a = a_.data();
    tile_.b = b_.data();
  }

  void run() {
    for (int64_t panel = 0; panel < weights_.num_panels(); ++panel) run_panel(panel);
  }

 private:
  void run_panel(int64_t panel) {
    const int64_t width = weights_.tiles().panel_width();
    for (int64_t s = 0; s < segments_.count; ++s) {
      const auto at = static_cast<size_t>(s);
      b_[at] = weights_.panel(panel) + segments_.b[at] * width;
    }
    tile_.columns = static_cast<int>(std::min(width, weights_.columns() - panel * width));
    tile_.bias_or_null = bias_ ? bias_ + panel * width : nullptr;
    vectors_ = (tile_.columns + weights_.tiles().width - 1) / weights_.tiles().width;
    float* y = y_ + panel * width * p_.output_size;
    SpatialDims rows = p_.output;
    rows[p_.last()] = 1;
    for (Position row(rows, p_.rank); !row.done(); row.next()) {
      int64_t place = 0;
      for (int i = 0; i < p_.rank; ++i) {
        const auto at = static_cast<size_t>(i);
        place = place * p_.padded[at] + row[i] * p_.axes[at].stride;
      }
      run_row(copy_ + place * p_.channels, y + row.index() * p_.output[p_.last()]);
    }
  }

  void run_row(const float* a, float* y) {
    const int64_t width = p_.output[p_.last()];
    int rows = 0;
    for (int64_t i = 0; i < width; i += rows) {
      rows = weights_.tiles().next_rows(width - i, vectors_, tile_);
      for (int64_t s = 0; s < segments_.count; ++s) {
        const auto at = static_cast<size_t>(s);
        a_[at] = a + i * tile_.a_row + segments_.a[at];
      }
      tile_.c = y + i;
      weights_.tiles().run(tile_, rows, vectors_);
    }
  }

  const Problem& p_;
  const Segments& segments_;
  const PackedMatrix& weights_;
  const float* bias_;
  const float* copy_;
  float* y_;
  TileArgs tile_;
  int vectors_ = 1;
  std::array<const float*, kMaxSegments> a_, b_;
};

}  // namespace

namespace {

// Of a group, [filters][channels][taps], the rows of its matrix, [taps][channels][filters].
void order_rows(const float* from, int64_t filters, int64_t channels, int64_t taps,
                std::vector<float>& ordered) {
  for (int64_t f = 0; f < filters; ++f) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        ordered[static_cast<size_t>((tap * channels + c) * filters + f)] = *from++;
      }
    }
  }
}

}  // namespace

TileConv::TileConv(const TensorView& weights, int64_t group, const TileKernels& tiles,
                   const KernelInit* init_or_null) {
  EDDY_CHECK(weights.rank >= 3 && group > 0 && weights.dims[0] % group == 0)
      << weights.dims[0] << " filters in " << group << " groups";
  const int64_t filters = weights.dims[0] / group, channels = weights.dims[1];
  int64_t taps = 1;
  for (int i = 2; i < weights.rank; ++i) taps *= weights.dims[i];
  const int64_t depth = taps * channels;
  const size_t group_bytes = (PackedMatrix::size_bytes(depth, filters, tiles) + 63) / 64 * 64;
  const std::string layout =
      "tile conv " + to_string(Dims(weights.shape())) + " group " + std::to_string(group);
  const PackedMemory all = pack_bytes(
      init_or_null, weights.data, layout, static_cast<size_t>(group) * group_bytes,
      [&](std::byte* to) {
        std::vector<float> ordered(static_cast<size_t>(depth * filters));
        for (int64_t g = 0; g < group; ++g, to += group_bytes) {
          order_rows(weights.as<float>() + g * filters * depth, filters, channels, taps, ordered);
          PackedMatrix::fill({ordered.data(), depth, filters, filters, 1}, to, tiles);
        }
      });
  EDDY_CHECK(all != nullptr) << "out of memory packing a convolution of " << depth << " rows";
  for (int64_t g = 0; g < group; ++g) {
    groups_.emplace_back(
        depth, filters, PackedMemory(all, all.get() + static_cast<size_t>(g) * group_bytes), tiles);
  }
}

bool TileConv::fits(const ConvShape& shape) { return num_segments(Problem(shape)) <= kMaxSegments; }

size_t TileConv::scratch_bytes(const ConvShape& shape) {
  const Problem p(shape);
  if (p.output_size == 0 || p.needs_no_copy()) return 0;
  return static_cast<size_t>(std::max<int64_t>(p.padded_size * p.channels, 1)) * sizeof(float);
}

Status TileConv::run(const ConvShape& shape, const float* x, const float* bias_or_null, float* y,
                     Scratch& scratch) const {
  EDDY_DCHECK(static_cast<size_t>(shape.group) == groups_.size())
      << shape.group << " groups, packed for " << groups_.size();
  const Problem p(shape);
  if (p.output_size == 0) return Status::ok();
  const Segments segments(p, shape);
  float* copy = nullptr;
  if (const size_t size_bytes = scratch_bytes(shape); size_bytes > 0) {
    copy = static_cast<float*>(scratch.reserve(size_bytes));
    if (copy == nullptr) return resource_exhausted("no memory for the padded input");
  }
  const int64_t filters = shape.group_filters();
  for (int64_t n = 0; n < shape.batch; ++n) {
    for (int64_t g = 0; g < shape.group; ++g) {
      const float* from = x + (n * shape.channels + g * p.channels) * p.input_size;
      if (copy) copy_padded(p, from, copy);
      GroupRun run(p, segments, groups_[static_cast<size_t>(g)],
                   bias_or_null ? bias_or_null + g * filters : nullptr, copy ? copy : from,
                   y + (n * shape.filters + g * filters) * p.output_size);
      run.run();
    }
  }
  return Status::ok();
}

}  // namespace eddy::cpu
