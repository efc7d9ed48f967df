#include "ops/cpu/blocked/plain_winograd_conv.h"

#include <algorithm>

#include "ops/cpu/blocked/block_plane.h"
#include "ops/cpu/transpose/transpose.h"

namespace eddy::cpu {
namespace {

constexpr int64_t kWantedUnits = 16;

}  // namespace

bool PlainWinogradConv::suits(const ConvShape& shape) {
  // Of the whole call: transforming the weights takes as long as some hundred positions do.
  constexpr int64_t kMinPositions = 1024;
  return WinogradConv::best_inputs(shape) > 0 && shape.grid.input_size > 0 &&
         shape.filters >= tile_kernels().width &&
         shape.batch * shape.grid.output_size >= kMinPositions;
}

PlainWinogradConv::PlainWinogradConv(const ConvShape& shape)
    : TwoStepConv(shape),
      image_(shape),
      layout_{shape.filters, shape.channels, shape.grid.axes[0].kernel,
              WinogradConv::best_inputs(shape)} {
  EDDY_DCHECK(suits(shape)) << "not for these tiles";
  image_.batch = 1;
  panel_sets_ = std::clamp<int64_t>(div_up(kWantedUnits, shape.batch), 1, layout_.num_panels());
}

int64_t PlainWinogradConv::y_floats() const {
  return div_up(layout_.filters, layout_.tiles.width) * layout_.tiles.width *
         shape_.grid.output_size;
}

WinogradConv PlainWinogradConv::conv_over(const Call& call) const {
  return {layout_, static_cast<const float*>(call.shared), call.bias_or_null};
}

size_t PlainWinogradConv::scratch_bytes() const {
  return static_cast<size_t>(x_floats() + y_floats()) * sizeof(float) +
         conv_over({}).scratch_bytes();
}

void PlainWinogradConv::prepare(const Call& call, void*, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  const Span parts = part_of(layout_.num_parts(), num_units(), unit);
  for (int64_t part = parts.begin; part < parts.end; ++part) {
    layout_.pack(call.weights, static_cast<float*>(call.shared), part);
  }
}

void PlainWinogradConv::run(const Call& call, void* scratch, uint32_t unit) const {
  EDDY_DCHECK(unit < num_units()) << "unit " << unit << " of " << num_units();
  const int64_t in_size = shape_.grid.input_size, out_size = shape_.grid.output_size;
  const int64_t image = unit / panel_sets_, width = layout_.tiles.width;
  auto* const blocked_x = static_cast<float*>(scratch);
  float* const blocked_y = blocked_x + x_floats();
  const float* const x = call.x + image * layout_.channels * in_size;
  for (int64_t c = 0; c < layout_.channels; c += width) {
    const int64_t channels = std::min(width, layout_.channels - c);
    float* const to = blocked_x + c * in_size;
    if (channels < width) std::fill_n(to, width * in_size, 0.0f);
    transpose_words(x + c * in_size, in_size, to, width, in_size, channels);
  }
  const Span panels = part_of(layout_.num_panels(), panel_sets_, unit % panel_sets_);
  const int64_t in_panel = layout_.tiles.max_vectors, all = div_up(layout_.filters, width);
  const Span vectors{panels.begin * in_panel, std::min(panels.end * in_panel, all)};
  conv_over(call).run_vectors({.shape = &image_, .x = blocked_x, .y = blocked_y}, vectors.begin,
                              vectors.end, blocked_y + y_floats());
  for (int64_t f = vectors.begin * width; f < vectors.end * width; f += width) {
    transpose_words(blocked_y + f * out_size, width,
                    call.y + (image * layout_.filters + f) * out_size, out_size,
                    std::min(width, layout_.filters - f), out_size);
  }
}

}  // namespace eddy::cpu
