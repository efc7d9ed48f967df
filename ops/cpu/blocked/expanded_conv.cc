#include "ops/cpu/blocked/expanded_conv.h"

#include <algorithm>

#include "ops/cpu/blocked/block_plane.h"

namespace eddy::cpu {
namespace {

constexpr int64_t kBandFloats = int64_t{128} << 10;  // between the two convolutions
constexpr int64_t kWantedParts = 8;
constexpr int64_t kMinRows = 16;  // of a band that is cut for more parts' sake

// Rows of the image that the windows of results [begin, end) read.
Span rows_read(const WindowAxis& axis, int64_t input, Span results) {
  const int64_t begin = results.begin * axis.stride - axis.pad_begin;
  const int64_t end = (results.end - 1) * axis.stride - axis.pad_begin + axis.extent();
  Span rows{std::clamp<int64_t>(begin, 0, input), std::clamp<int64_t>(end, 0, input)};
  rows.end = std::max(rows.begin, rows.end);
  return rows;
}

}  // namespace

// Images, then bands of rows, an even number of them, then panels.
struct ExpandedConv::Partition {
  int64_t images, bands, panels;

  Partition(const ExpandedConv& conv, const ConvShape& shape, const Grid& grid)
      : images(shape.batch), panels(conv.expansion_.num_panels()) {
    const int64_t rows = std::max<int64_t>(grid.output[0], 1);
    const int64_t of_row = std::max<int64_t>(grid.input[1], 1) * conv.expansion_.panel_width();
    const WindowAxis& axis = grid.axes[0];
    const int64_t read = std::max<int64_t>(kBandFloats / of_row, axis.extent());
    const int64_t most_rows = (read - axis.extent()) / axis.stride + 1;
    const int64_t wanted = div_up(kWantedParts, std::max<int64_t>(images * panels, 1));
    const int64_t fitting = div_up(rows, most_rows);
    bands =
        std::max(fitting > 1 ? div_up(fitting, 2) * 2 : 1, count_bands(rows / kMinRows, wanted));
    bands = std::min(bands, rows);
  }
  int64_t count() const { return images * bands * panels; }
};

uint32_t ExpandedConv::count_tiles(const ConvShape& expansion, const Grid& grid) const {
  return static_cast<uint32_t>(Partition(*this, expansion, grid).count());
}

size_t ExpandedConv::scratch_bytes(const ConvShape& expansion, const Grid& grid) const {
  const Partition parts(*this, expansion, grid);
  const int64_t results = div_up(std::max<int64_t>(grid.output[0], 1), parts.bands);
  const int64_t rows = std::min((results - 1) * grid.axes[0].stride + grid.axes[0].extent(),
                                std::max<int64_t>(grid.input[0], 1));
  return static_cast<size_t>(rows * std::max<int64_t>(grid.input[1], 1) *
                             expansion_.panel_width()) *
         sizeof(float);
}

void ExpandedConv::run_tile(const Call& call, uint32_t tile, void* scratch) const {
  const Grid& grid = *call.grid;
  const Partition parts(*this, *call.expansion, grid);
  EDDY_DCHECK(tile < parts.count()) << "tile " << tile << " of " << parts.count();
  EDDY_DCHECK(scratch != nullptr) << "no memory for what lies between";
  const int64_t panel = tile % parts.panels, rest = tile / parts.panels;
  const int64_t image = rest / parts.bands;
  const Span results = part_of(grid.output[0], parts.bands, rest % parts.bands);
  const Span rows = rows_read(grid.axes[0], grid.input[0], results);
  auto* const between = static_cast<float*>(scratch);
  EDDY_DCHECK(static_cast<size_t>(rows.size() * grid.input[1] * expansion_.panel_width()) *
                  sizeof(float) <=
              scratch_bytes(*call.expansion, grid))
      << rows.size() << " rows";
  expansion_.run_rows({.shape = call.expansion,
                       .x = call.x,
                       .y = between,
                       .clamp_or_null = call.inner.clamp_or_null,
                       .activation_or_null = call.inner.activation_or_null},
                      image, panel, rows.begin, rows.end);
  const int64_t width = expansion_.tiles().width, max_vectors = expansion_.tiles().max_vectors;
  const int64_t blocks = div_up(call.expansion->filters, width), first = panel * max_vectors;
  Grid band = grid;
  band.input[0] = rows.size();
  band.input_size = rows.size() * grid.input[1];
  band.output[0] = results.size();
  band.output_size = results.size() * grid.output[1];
  band.axes[0].pad_begin =
      rows.begin - (results.begin * grid.axes[0].stride - grid.axes[0].pad_begin);
  float* const y =
      call.y +
      ((image * blocks + first) * grid.output_size + results.begin * grid.output[1]) * width;
  BlockedWindows(BlockedWindows::Fold::kProduct, expansion_.tiles())
      .run_planes({.grid = &band,
                   .num_images = 1,
                   .num_blocks = std::min(max_vectors, blocks - first),
                   .x = between,
                   .y = y,
                   .weights = &weights_,
                   .clamp_or_null = call.outer.clamp_or_null,
                   .activation_or_null = call.outer.activation_or_null},
                  first, grid.output_size * width);
}

}  // namespace eddy::cpu
