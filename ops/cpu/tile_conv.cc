#include "ops/cpu/tile_conv.h"

#include <algorithm>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/packing/pack_bytes.h"
#include "ops/cpu/transpose/transpose.h"

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

// Copies positions [first, end) of a padded row (the last axis) of every channel:
// to[position][channel], from the row's first one on.
void copy_row(const Problem& p, const float* x, int64_t first, int64_t end, float* to) {
  const int64_t pad = p.axes[p.last()].pad_begin;
  const int64_t inside = std::clamp<int64_t>(pad, first, end);
  const int64_t outside = std::clamp<int64_t>(pad + p.input[p.last()], inside, end);
  std::fill(to + first * p.channels, to + inside * p.channels, 0.0f);
  transpose_words(x + inside - pad, p.input_size, to + inside * p.channels, p.channels,
                  outside - inside, p.channels);
  std::fill(to + outside * p.channels, to + end * p.channels, 0.0f);
}

void copy_padded(const Problem& p, const float* x, float* to) {
  SpatialDims rows = p.padded;
  rows[p.last()] = 1;
  const int64_t width = p.padded[p.last()], row_size = width * p.channels;
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
      copy_row(p, x + from * p.input[p.last()], 0, width, to);
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
    tile_.a_row = p.axes[last].stride * p.channels;
    tile_.b_row = weights.tiles().panel_width();
  }

  // Positions [first, end) of the last axis, of each row of them.
  void run_panel(int64_t panel, int64_t first, int64_t end) {
    EDDY_DCHECK(first >= 0 && first < end && end <= p_.output[p_.last()])
        << first << " to " << end << " of " << p_.output[p_.last()];
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
      run_row(copy_ + place * p_.channels + first * tile_.a_row, end - first,
              y + row.index() * p_.output[p_.last()] + first);
    }
  }

 private:
  static constexpr int64_t kFewPositions = 12, kWholeTiles = 6;
  static constexpr int64_t kMaxRows = 48, kMaxWidth = 64;
  // Rows of a panel that the first-level cache holds while kMaxRows positions pass.
  static constexpr int64_t kDepth = 128;

  // Columns lie apart in the result: rows are made side by side, and turned over.
  void run_row(const float* a, int64_t count, float* y) {
    const int64_t width = weights_.tiles().panel_width();
    EDDY_DCHECK(width <= kMaxWidth) << "panels of " << width;
    if (count < kFewPositions) {
      tile_.c_row = 1;
      tile_.c_column = p_.output_size;
      return run_tiles(a, count, 0, segments_.depth, y);
    }
    tile_.c_row = width;
    tile_.c_column = 1;
    alignas(64) float rows[kMaxRows * kMaxWidth];
    const int64_t depth =
        segments_.count == 1 ? even_part(segments_.depth, kDepth, 1) : segments_.depth;
    const int64_t most = even_part(count, kMaxRows, kWholeTiles);
    for (int64_t i = 0; i < count; i += most) {
      const int64_t some = std::min(most, count - i);
      for (int64_t first = 0; first == 0 || first < segments_.depth; first += depth) {
        run_tiles(a + i * tile_.a_row, some, first, std::min(depth, segments_.depth - first), rows);
      }
      transpose_words(rows, width, y + i, p_.output_size, tile_.columns, some);
    }
  }

  // As few parts as there must be, all of about the same size, which is a multiple of `step`.
  static int64_t even_part(int64_t count, int64_t most, int64_t step) {
    const int64_t parts = std::max<int64_t>((count + most - 1) / most, 1);
    return ((count + parts - 1) / parts + step - 1) / step * step;
  }

  // Rows of c by some of the depth: the sums so far are added to.
  void run_tiles(const float* a, int64_t count, int64_t first, int64_t depth, float* c) {
    TileArgs t = tile_;
    t.depth = depth;
    if (first > 0) t.bias_or_null = nullptr;
    std::array<const float*, kMaxSegments> of_a, of_b;
    t.a = of_a.data();
    t.b = of_b.data();
    for (int64_t s = 0; s < segments_.count; ++s) {
      const auto at = static_cast<size_t>(s);
      of_b[at] = b_[at] + first * t.b_row;
    }
    int rows = 0;
    for (int64_t i = 0; i < count; i += rows) {
      rows = weights_.tiles().next_rows(count - i, vectors_, t);
      for (int64_t s = 0; s < segments_.count; ++s) {
        const auto at = static_cast<size_t>(s);
        of_a[at] = a + i * t.a_row + segments_.a[at] + first;
      }
      t.c = c + i * t.c_row;
      t.add_or_null = first > 0 ? t.c : nullptr;
      weights_.tiles().run(t, rows, vectors_);
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
  std::array<const float*, kMaxSegments> b_;  // of the panel
};

// A group of an image is cut into pieces, panels of filters by blocks of positions. Of few groups
// the first step copies all, a share by each unit; of many each unit copies its own in the second.
class TileConvSteps final : public TwoStepConv {
 public:
  TileConvSteps(const ConvShape& shape, const std::vector<PackedMatrix>& groups)
      : TwoStepConv(shape), p_(shape), segments_(p_, shape), groups_(groups) {
    EDDY_DCHECK(static_cast<size_t>(shape.group) == groups.size())
        << shape.group << " groups, packed for " << groups.size();
    copy_size_ = p_.needs_no_copy() ? 0 : std::max<int64_t>(p_.padded_size * p_.channels, 1);
    num_items_ = p_.output_size == 0 ? 0 : shape.batch * shape.group;
    const int64_t width = p_.output[p_.last()];
    if (p_.rank == 1) num_blocks_ = std::max<int64_t>((width + kBlock - 1) / kBlock, 1);
    block_ =
        ((width + num_blocks_ - 1) / num_blocks_ + kWholeTiles - 1) / kWholeTiles * kWholeTiles;
    pieces_each_ = groups.empty() ? 0 : groups[0].num_panels() * num_blocks_;
    const int64_t num_pieces = num_items_ * pieces_each_;
    const int64_t most = copies_first() ? num_pieces : num_items_;
    const int64_t terms =
        num_items_ * p_.output_size * shape.group_filters() * shape.group_channels() * p_.num_taps;
    num_units_ = std::clamp<int64_t>(terms / kUnitTerms, 1, std::max<int64_t>(most, 1));
  }

  uint32_t num_units() const override { return static_cast<uint32_t>(num_units_); }
  size_t shared_bytes() const override { return copies_first() ? bytes_of(num_items_) : 0; }
  size_t scratch_bytes() const override { return copies_first() ? 0 : bytes_of(1); }

  void prepare(const Call& call, void*, uint32_t unit) const override {
    if (!copies_first() || copy_size_ == 0) return;
    for (int64_t item = 0; item < num_items_; ++item) {
      float* const to = static_cast<float*>(call.shared) + item * copy_size_;
      if (p_.rank == 1) {
        const int64_t width = p_.padded[0];
        copy_row(p_, image(call, item), width * unit / num_units_, width * (unit + 1) / num_units_,
                 to);
      } else if (unit == 0) {
        copy_padded(p_, image(call, item), to);
      }
    }
  }

  void run(const Call& call, void* scratch, uint32_t unit) const override {
    const int64_t many = copies_first() ? pieces_each_ : 1;  // parts of an item
    const int64_t first = num_items_ * many * unit / num_units_;
    const int64_t end = num_items_ * many * (unit + 1) / num_units_;
    for (int64_t at = first; at < end;) {
      const int64_t item = at / many;
      const int64_t last = std::min(end, (item + 1) * many);
      if (copies_first()) {
        run_item(call, item, static_cast<float*>(call.shared) + item * copy_size_, at % many,
                 last - item * many);
      } else {
        auto* const copy = static_cast<float*>(scratch);
        if (copy_size_ > 0) copy_padded(p_, image(call, item), copy);
        run_item(call, item, copy, 0, pieces_each_);
      }
      at = last;
    }
  }

 private:
  static constexpr int64_t kBlock = 192, kWholeTiles = 24, kUnitTerms = 2'000'000, kFewItems = 8;

  bool copies_first() const { return num_items_ < kFewItems; }
  size_t bytes_of(int64_t items) const {
    return static_cast<size_t>(items * copy_size_) * sizeof(float);
  }
  const float* image(const Call& call, int64_t item) const {
    return call.x + item * p_.channels * p_.input_size;
  }

  void run_item(const Call& call, int64_t item, const float* copy, int64_t first_piece,
                int64_t end_piece) const {
    const int64_t filters = shape_.group_filters(), group = item % shape_.group;
    GroupRun run(p_, segments_, groups_[static_cast<size_t>(group)],
                 call.bias_or_null ? call.bias_or_null + group * filters : nullptr,
                 copy_size_ > 0 ? copy : image(call, item),
                 call.y + item * filters * p_.output_size);
    const int64_t width = p_.output[p_.last()];
    for (int64_t piece = first_piece; piece < end_piece; ++piece) {
      const int64_t begin = piece % num_blocks_ * block_;
      const int64_t end = std::min(begin + block_, width);
      if (begin < end) run.run_panel(piece / num_blocks_, begin, end);
    }
  }

  const Problem p_;
  const Segments segments_;
  const std::vector<PackedMatrix>& groups_;
  int64_t copy_size_ = 0;  // floats of a padded input; 0: read where it lies
  int64_t num_items_ = 0;  // groups of all images
  int64_t num_blocks_ = 1, block_ = 0, pieces_each_ = 0, num_units_ = 1;
};

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

size_t TileConv::scratch_bytes(const ConvShape& shape) const {
  const TileConvSteps steps(shape, groups_);
  return steps.shared_bytes() + steps.scratch_bytes();
}

std::unique_ptr<const TwoStepConv> TileConv::steps(const ConvShape& shape) const {
  return std::make_unique<const TileConvSteps>(shape, groups_);
}

Status TileConv::run(const ConvShape& shape, const float* x, const float* bias_or_null, float* y,
                     Scratch& scratch) const {
  const TileConvSteps steps(shape, groups_);
  void* memory = nullptr;  // of one kind
  if (const size_t bytes = steps.shared_bytes() + steps.scratch_bytes(); bytes > 0) {
    memory = scratch.reserve(bytes);
    if (memory == nullptr) return resource_exhausted("no memory for the padded input");
  }
  const TwoStepConv::Call call{.x = x, .bias_or_null = bias_or_null, .y = y, .shared = memory};
  for (uint32_t unit = 0; unit < steps.num_units(); ++unit) steps.prepare(call, memory, unit);
  for (uint32_t unit = 0; unit < steps.num_units(); ++unit) steps.run(call, memory, unit);
  return Status::ok();
}

}  // namespace eddy::cpu
