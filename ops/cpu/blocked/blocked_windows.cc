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

// Sets of images, then bands of rows, then sets of an image's blocks.
struct Partition {
  int64_t image_sets, bands, block_sets;

  Partition(const Grid& grid, int64_t num_images, int64_t num_blocks) {
    const int64_t work = grid.output_size * max_live_taps(grid) * num_images * num_blocks;
    const int64_t wanted = count_parts(work, kPartWork, kMaxParts);
    const int64_t most_bands = std::clamp<int64_t>(grid.output_size / kMinPositions, 1,
                                                   std::max<int64_t>(grid.output[0], 1));
    image_sets = std::clamp<int64_t>(num_images, 1, wanted);
    bands = count_bands(most_bands, div_up(wanted, image_sets));
    block_sets = std::clamp<int64_t>(div_up(wanted, image_sets * bands), 1,
                                     std::max<int64_t>(num_blocks, 1));
  }
  int64_t count() const { return image_sets * bands * block_sets; }
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
    const WindowAxis &rows = grid_.axes[0], &columns = grid_.axes[1];
    args_.row_step = rows.dilation * grid_.input[1] * tiles.width;
    args_.num_columns = columns.kernel;
    args_.dilation = columns.dilation;
    args_.stride = columns.stride;
    args_.first_column = -columns.pad_begin;
    args_.width = grid_.input[1];
    args_.count = grid_.output[1];
    if (fold == Fold::kProduct) args_.clamp_or_null = call.clamp_or_null;
    if (fold == Fold::kAverage) divisors_.resize(static_cast<size_t>(grid_.output[1]));
    args_.divisors = divisors_.data();
    y_plane_ = grid_.output_size * tiles.width;
  }
  void set_y_plane(int64_t y_plane) { y_plane_ = y_plane; }

  // The rows of the outputs of a plane, which is a block of channels of some image.
  void run(int64_t plane, int64_t block, Span rows) {
    const int64_t row_size = grid_.output[1] * tiles_.width;
    const float* const x = call_.x + plane * grid_.input_size * tiles_.width;
    const float* weights = nullptr;
    if (fold_ == Fold::kProduct) {
      weights = call_.weights->block(block);
      args_.start_or_null = call_.weights->bias_or_null(block);
    }
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const WindowAxis& axis = grid_.axes[0];
      const Span live = live_taps(axis, grid_.input[0], row);
      const int64_t first = row * axis.stride - axis.pad_begin + live.begin * axis.dilation;
      args_.num_rows = live.size();
      args_.x = live.size() > 0 ? x + first * grid_.input[1] * tiles_.width : x;
      if (weights) args_.weights_or_null = weights + live.begin * args_.num_columns * tiles_.width;
      if (fold_ == Fold::kAverage) set_divisors(row, live.size());
      const int64_t at = plane * y_plane_ + row * row_size;
      args_.y = call_.y + at;
      args_.add_or_null = call_.add_or_null ? call_.add_or_null + at : nullptr;
      fold_row();
      if (call_.activation_or_null) call_.activation_or_null->apply(args_.y, row_size);
    }
  }

 private:
  void fold_row() const {
    switch (fold_) {
      case Fold::kMax:
        return tiles_.window_max(args_);
      case Fold::kAverage:
        return tiles_.window_sum(args_);
      case Fold::kProduct:
        return tiles_.window_product(args_);
    }
  }

  // Of the windows of a row, whose taps have `live` rows inside the image.
  void set_divisors(int64_t row, int64_t live) {
    const WindowAxis &rows = grid_.axes[0], &columns = grid_.axes[1];
    const int64_t height = call_.counts_padding ? padded_taps(rows, grid_.input[0], row) : live;
    if (height == height_) return;
    height_ = height;
    for (int64_t column = 0; column < grid_.output[1]; ++column) {
      const int64_t width = call_.counts_padding
                                ? padded_taps(columns, grid_.input[1], column)
                                : live_taps(columns, grid_.input[1], column).size();
      divisors_[static_cast<size_t>(column)] =
          static_cast<float>(std::max<int64_t>(height * width, 1));
    }
  }

  const Fold fold_;
  const TileKernels& tiles_;
  const BlockedWindows::Call& call_;
  const Grid& grid_;
  int64_t y_plane_;      // floats from one plane of results to the next
  int64_t height_ = -1;  // of the windows that divisors_ are of
  std::vector<float> divisors_;
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

uint32_t BlockedWindows::count_tiles(const Grid& grid, int64_t num_images,
                                     int64_t num_blocks) const {
  return static_cast<uint32_t>(Partition(grid, num_images, num_blocks).count());
}

void BlockedWindows::run_tile(const Call& call, uint32_t tile) const {
  EDDY_DCHECK(call.grid->rank == 2 && (fold_ != Fold::kProduct || call.weights != nullptr))
      << "a call without a grid or weights";
  const Partition parts(*call.grid, call.num_images, call.num_blocks);
  EDDY_DCHECK(tile < parts.count()) << "tile " << tile << " of " << parts.count();
  const int64_t block_set = tile % parts.block_sets, rest = tile / parts.block_sets;
  const Span images = part_of(call.num_images, parts.image_sets, rest / parts.bands);
  const Span rows = part_of(call.grid->output[0], parts.bands, rest % parts.bands);
  const Span blocks = part_of(call.num_blocks, parts.block_sets, block_set);
  PlaneRows some(fold_, tiles_, call);
  for (int64_t image = images.begin; image < images.end; ++image) {
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      some.run(image * call.num_blocks + block, block, rows);
    }
  }
}

void BlockedWindows::run_planes(const Call& call, int64_t first_block, int64_t y_plane) const {
  EDDY_DCHECK(call.num_images == 1 && call.add_or_null == nullptr) << "planes of one image";
  PlaneRows some(fold_, tiles_, call);
  some.set_y_plane(y_plane);
  for (int64_t block = 0; block < call.num_blocks; ++block) {
    some.run(block, first_block + block, {0, call.grid->output[0]});
  }
}

}  // namespace eddy::cpu
