#include "ops/cpu/blocked/blocked_windows.h"

#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/blocked/block_plane.h"

namespace eddy::cpu {
namespace {

// Vectors folded that are worth another worker's wake-up, and the most parts of a call.
constexpr int64_t kPartWork = 8 << 10;
constexpr int64_t kMaxParts = 64;

// The most taps of a window that lie inside the input: the others, perhaps far more, are padding.
int64_t max_live_taps(const Grid& grid) {
  return std::min(grid.kernel[0], grid.input[0]) * std::min(grid.kernel[1], grid.input[1]);
}

// Parts of planes, then of a plane's rows.
struct Partition {
  int64_t plane_sets, bands;

  Partition(const Grid& grid, int64_t num_planes) {
    const int64_t work = grid.output_size * max_live_taps(grid) * num_planes;
    const int64_t wanted = std::clamp<int64_t>(work / kPartWork, 1, kMaxParts);
    plane_sets = std::max<int64_t>(std::min(wanted, num_planes), 1);
    bands = std::clamp<int64_t>(wanted / plane_sets, 1, std::max<int64_t>(grid.output[0], 1));
  }
  int64_t count() const { return plane_sets * bands; }
};

// Taps of one axis in the input with its padding.
int64_t padded_taps(const WindowAxis& axis, int64_t input, int64_t out) {
  const int64_t room = input + axis.pad_end + axis.pad_begin - out * axis.stride;
  return std::clamp<int64_t>(div_up(room, axis.dilation), 0, axis.kernel);
}

// The rows of planes' windows, plane by plane.
class PlaneRows {
 public:
  using Fold = BlockedWindows::Fold;

  PlaneRows(Fold fold, const TileKernels& tiles, const BlockedWindows::Call& call)
      : fold_(fold), tiles_(tiles), call_(call), grid_(*call.grid) {
    if (fold == Fold::kProduct) {
      args_.clamp_or_null = call.clamp_or_null;
      live_weights_.resize(static_cast<size_t>(max_live_taps(grid_) * tiles.width));
    }
    args_.y_step = tiles.width;
    args_.x_step = grid_.axes[1].stride * tiles.width;
    pays_padding_ = pays_padding();
    taps_.resize(static_cast<size_t>(pays_padding_ ? grid_.kernel_size : max_live_taps(grid_)));
    args_.taps = taps_.data();
  }

  // The rows [first, end) of the plane's outputs.
  void run(int64_t plane, Span rows) {
    out_at_ = plane * grid_.output_size * tiles_.width;
    x_ = call_.x + plane * grid_.input_size * tiles_.width;
    args_.num_taps = 0;
    if (fold_ == Fold::kProduct) {
      const int64_t block = plane % call_.num_blocks;
      weights_ = call_.weights->block(block);
      args_.start_or_null = call_.weights->bias_or_null(block);
    }
    if (pays_padding_) return run_padded(rows);
    const WindowAxis& columns = grid_.axes[1];
    const Span inner = inner_outputs(columns, grid_.input[1], grid_.output[1]);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t at = 0; at < inner.begin; ++at) run_some(row, at, 1);
      if (inner.size() > 0) run_some(row, inner.begin, inner.size());
      for (int64_t at = inner.end; at < grid_.output[1]; ++at) run_some(row, at, 1);
      activate(row);
    }
  }

 private:
  static constexpr int64_t kRowsAtOnce = 16;  // that are copied

  // Inputs of an axis that the windows of neighbouring outputs span.
  int64_t spanned(int axis, int64_t outputs) const {
    const WindowAxis& a = grid_.axes[axis];
    return (outputs - 1) * a.stride + (a.kernel - 1) * a.dilation + 1;
  }

  // Products of narrow images: most windows reach into the padding of some side, and each kind of
  // them has taps of its own. A copy with zeros around has one kind.
  bool pays_padding() const {
    constexpr int64_t kMaxColumns = 32, kMaxSpan = 96;
    const int64_t outputs = grid_.output[1];
    return fold_ == Fold::kProduct && outputs <= kMaxColumns && spanned(1, outputs) <= kMaxSpan &&
           spanned(0, kRowsAtOnce) <= kMaxSpan &&
           inner_outputs(grid_.axes[1], grid_.input[1], outputs).size() < outputs;
  }

  void run_padded(Span rows) {
    const int64_t width = spanned(1, grid_.output[1]) * tiles_.width;
    set_taps({0, grid_.axes[0].kernel}, {0, grid_.axes[1].kernel}, width);
    for (int64_t first = rows.begin; first < rows.end; first += kRowsAtOnce) {
      const int64_t end = std::min(first + kRowsAtOnce, rows.end);
      pad({first, end}, width);
      for (int64_t row = first; row < end; ++row) {
        args_.x = padded_.data() + (row - first) * grid_.axes[0].stride * width;
        fold(row, 0, grid_.output[1]);
        activate(row);
      }
    }
  }

  // What the windows of the rows span; each row is `width` floats.
  void pad(Span rows, int64_t width) {
    const int64_t count = spanned(0, rows.size());
    padded_.resize(static_cast<size_t>(count * width));
    const int64_t first = rows.begin * grid_.axes[0].stride - grid_.axes[0].pad_begin;
    const int64_t left = std::min(grid_.axes[1].pad_begin * tiles_.width, width);
    const int64_t row_size = grid_.input[1] * tiles_.width;
    const int64_t copied = std::min(row_size, width - left);
    for (int64_t r = 0; r < count; ++r) {
      float* const to = padded_.data() + r * width;
      if (first + r < 0 || first + r >= grid_.input[0]) {
        std::fill_n(to, width, 0.0f);
        continue;
      }
      std::fill_n(to, left, 0.0f);
      std::copy_n(x_ + (first + r) * row_size, copied, to + left);
      std::fill_n(to + left + copied, width - left - copied, 0.0f);
    }
  }

  // Positions of one row that have the same taps.
  void run_some(int64_t row, int64_t column, int64_t count) {
    const WindowAxis &rows = grid_.axes[0], &columns = grid_.axes[1];
    const Span live_rows = live_taps(rows, grid_.input[0], row);
    const Span live_columns = live_taps(columns, grid_.input[1], column);
    set_taps(live_rows, live_columns, grid_.input[1] * tiles_.width);
    const int64_t in_row = row * rows.stride - rows.pad_begin;
    const int64_t in_column = column * columns.stride - columns.pad_begin;
    args_.x = x_ + (in_row * grid_.input[1] + in_column) * tiles_.width;
    const int64_t taps = call_.counts_padding ? padded_taps(rows, grid_.input[0], row) *
                                                    padded_taps(columns, grid_.input[1], column)
                                              : live_rows.size() * live_columns.size();
    args_.divisor = static_cast<float>(std::max<int64_t>(taps, 1));
    fold(row, column, count);
  }

  void fold(int64_t row, int64_t column, int64_t count) {
    const int64_t at = out_at_ + (row * grid_.output[1] + column) * tiles_.width;
    args_.count = count;
    args_.y = call_.y + at;
    args_.add_or_null = call_.add_or_null ? call_.add_or_null + at : nullptr;
    switch (fold_) {
      case Fold::kMax:
        return tiles_.window_max(args_);
      case Fold::kAverage:
        return tiles_.window_sum(args_);
      case Fold::kProduct:
        return tiles_.window_product(args_);
    }
  }

  void activate(int64_t row) const {
    if (call_.activation_or_null == nullptr) return;
    const int64_t row_size = grid_.output[1] * tiles_.width;
    call_.activation_or_null->apply(call_.y + out_at_ + row * row_size, row_size);
  }

  // Of images whose rows are `width` floats. Nearly all positions of a plane have the same taps.
  void set_taps(Span rows, Span columns, int64_t width) {
    if (rows == rows_ && columns == columns_ && args_.num_taps > 0) return;
    rows_ = rows;
    columns_ = columns;
    args_.num_taps = 0;
    const bool is_whole = rows.size() * columns.size() == grid_.kernel_size;
    args_.weights_or_null = is_whole || weights_ == nullptr ? weights_ : live_weights_.data();
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const int64_t n = args_.num_taps++;
        taps_[static_cast<size_t>(n)] =
            r * grid_.axes[0].dilation * width + c * grid_.axes[1].dilation * tiles_.width;
        if (is_whole || weights_ == nullptr) continue;
        std::copy_n(weights_ + (r * grid_.kernel[1] + c) * tiles_.width, tiles_.width,
                    live_weights_.data() + n * tiles_.width);
      }
    }
  }

  const Fold fold_;
  const TileKernels& tiles_;
  const BlockedWindows::Call& call_;
  const Grid& grid_;
  bool pays_padding_ = false;
  int64_t out_at_ = 0;
  const float* x_ = nullptr;
  const float* weights_ = nullptr;
  std::vector<float> live_weights_, padded_;
  std::vector<int64_t> taps_;
  Span rows_, columns_;  // that taps_ holds
  WindowArgs args_;
};

}  // namespace

DepthwiseWeights::DepthwiseWeights(const TensorView& weights, const float* bias_or_null,
                                   const TileKernels& tiles)
    : tiles_(tiles), taps_(weights.dims[2] * weights.dims[3]) {
  EDDY_CHECK(weights.rank == 4 && weights.dims[1] == 1) << "no depthwise weights";
  const int64_t channels = weights.dims[0], width = tiles.width;
  const int64_t blocks = div_up(channels, width);
  data_.assign(static_cast<size_t>(blocks * taps_ * width), 0.0f);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < taps_; ++tap) {
      data_[static_cast<size_t>((c / width * taps_ + tap) * width + c % width)] =
          weights.as<float>()[c * taps_ + tap];
    }
  }
  if (bias_or_null == nullptr) return;
  bias_.assign(static_cast<size_t>(blocks * width), 0.0f);
  std::copy_n(bias_or_null, channels, bias_.begin());
}

uint32_t BlockedWindows::count_tiles(const Grid& grid, int64_t num_planes) const {
  return static_cast<uint32_t>(Partition(grid, num_planes).count());
}

void BlockedWindows::run_tile(const Call& call, uint32_t tile) const {
  EDDY_DCHECK(call.grid->rank == 2 && (fold_ != Fold::kProduct || call.weights != nullptr))
      << "a call without a grid or weights";
  const Partition parts(*call.grid, call.num_planes);
  EDDY_DCHECK(tile < parts.count()) << "tile " << tile << " of " << parts.count();
  const Span planes = part_of(call.num_planes, parts.plane_sets, tile / parts.bands);
  const Span rows = part_of(call.grid->output[0], parts.bands, tile % parts.bands);
  PlaneRows some(fold_, tiles_, call);
  for (int64_t plane = planes.begin; plane < planes.end; ++plane) some.run(plane, rows);
}

}  // namespace eddy::cpu
