#include "ops/cpu/blocked/plain_conv.h"

#include <algorithm>

#include "ops/cpu/blocked/block_plane.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

constexpr int64_t kWantedUnits = 16;

// Of equal blocks, as few as vectors allow.
BlockedConv::Layout layout_of(const ConvShape& shape) {
  const int64_t num_blocks = div_up(shape.channels, tile_kernels().width);
  return {.filters = shape.filters,
          .channels = shape.channels,
          .taps = shape.grid.kernel_size,
          .block = div_up(shape.channels, num_blocks)};
}

}  // namespace

bool PlainConv::suits(const ConvShape& shape) {
  constexpr int64_t kMaxTaps = 64;
  // Packing takes as long as some hundred positions do; a call of fewer is left to the library.
  constexpr int64_t kMinPositions = 512;
  return shape.grid.rank == 2 && shape.group == 1 && shape.channels > 0 && shape.batch > 0 &&
         shape.filters >= tile_kernels().width / 2 && shape.grid.kernel_size > 1 &&
         shape.grid.kernel_size <= kMaxTaps && shape.grid.output_size > 0 &&
         shape.grid.input_size > 0 && shape.batch * shape.grid.output_size >= kMinPositions;
}

PlainConv::PlainConv(const ConvShape& shape)
    : TwoStepConv(shape),
      image_(shape),
      layout_(layout_of(shape)),
      columns_(shape.grid.axes[1], shape.grid.input[1], shape.grid.output[1]) {
  EDDY_DCHECK(suits(shape)) << "not for these tiles";
  image_.batch = 1;
  image_.grid.input[1] = columns_.size;
  image_.grid.input_size = image_.grid.input[0] * columns_.size;
  image_.grid.axes[1].pad_begin = image_.grid.axes[1].pad_end = 0;
  panel_sets_ = std::clamp<int64_t>(div_up(kWantedUnits, shape.batch), 1, layout_.num_panels());
}

int64_t PlainConv::x_floats() const {
  return layout_.num_blocks() * layout_.block * image_.grid.input_size;
}

int64_t PlainConv::y_floats() const {
  const int64_t width = tile_kernels().width;
  return div_up(layout_.filters, width) * width * shape_.grid.output_size;
}

void PlainConv::prepare(const Call& call, void*, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  const Span parts = part_of(layout_.num_parts(), num_units(), unit);
  for (int64_t part = parts.begin; part < parts.end; ++part) {
    layout_.pack(call.weights, static_cast<float*>(call.shared), part);
  }
}

void PlainConv::block_image(const float* x, float* to) const {
  const int64_t rows = shape_.grid.input[0], width = shape_.grid.input[1];
  const int64_t plane = shape_.grid.input_size;
  for (int64_t first = 0; first < layout_.channels; first += layout_.block) {
    const int64_t block = layout_.block;
    const int64_t channels = std::min(block, layout_.channels - first);
    if (channels < block) std::fill_n(to, block * image_.grid.input_size, 0.0f);
    for (int64_t row = 0; row < rows; ++row, to += columns_.size * block) {
      std::fill_n(to, columns_.left * block, 0.0f);
      transpose_words(x + first * plane + row * width, plane, to + columns_.left * block, block,
                      columns_.count, channels);
      std::fill_n(to + (columns_.left + columns_.count) * block, columns_.right() * block, 0.0f);
    }
  }
}

void PlainConv::run(const Call& call, void* scratch, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  const int64_t out_size = shape_.grid.output_size, width = tile_kernels().width;
  const int64_t image = unit / panel_sets_;
  auto* const blocked_x = static_cast<float*>(scratch);
  float* const blocked_y = blocked_x + (x_floats() + width - 1) / width * width;
  block_image(call.x + image * layout_.channels * shape_.grid.input_size, blocked_x);
  const BlockedConv conv(layout_, static_cast<const float*>(call.shared), call.bias_or_null);
  const Span panels = part_of(layout_.num_panels(), panel_sets_, unit % panel_sets_);
  conv.run_panels({.shape = &image_, .x = blocked_x, .y = blocked_y}, panels.begin, panels.end);
  const int64_t end = std::min(panels.end * layout_.panel_width, layout_.filters);
  for (int64_t f = panels.begin * layout_.panel_width; f < end; f += width) {
    transpose_words(blocked_y + f * out_size, width,
                    call.y + (image * layout_.filters + f) * out_size, out_size,
                    std::min(width, layout_.filters - f), out_size);
  }
}

}  // namespace eddy::cpu
