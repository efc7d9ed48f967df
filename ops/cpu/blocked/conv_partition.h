// How a convolution of blocked images falls into parts that write apart, by its shape alone: bands
// of positions by panels of filters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "graph/base/check.h"
#include "ops/cpu/blocked/block_plane.h"
#include "ops/reference/windows/conv_shape.h"

namespace eddy::cpu {

// Multiply-adds that are worth another worker's wake-up, and the most parts of a call.
constexpr int64_t kConvPartWork = int64_t{1} << 19;
constexpr int64_t kMaxConvParts = 64;

// The two spatial axes; one where neighbouring rows follow each other without a gap.
struct ConvPlane {
  WindowAxis rows, columns;
  int64_t in_rows, in_columns, out_rows, out_columns;

  explicit ConvPlane(const ConvShape& s)
      : rows(s.grid.axes[0]),
        columns(s.grid.axes[1]),
        in_rows(s.grid.input[0]),
        in_columns(s.grid.input[1]),
        out_rows(s.grid.output[0]),
        out_columns(s.grid.output[1]) {
    EDDY_DCHECK(s.grid.rank == 2) << s.grid.rank << " spatial axes";
    const auto is_point = [](const WindowAxis& axis, int64_t in, int64_t out) {
      return axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && in == out;
    };
    if (!is_point(rows, in_rows, out_rows) || !is_point(columns, in_columns, out_columns)) return;
    in_columns = out_columns = in_columns * in_rows;
    in_rows = out_rows = 1;
  }
  bool is_line() const { return out_rows == 1; }
};

// Windows of one element that leave positions out.
inline bool is_sparse(const ConvShape& s) {
  const auto is_point = [](const WindowAxis& axis) {
    return axis.kernel == 1 && axis.pad_begin == 0;
  };
  const std::span<const WindowAxis> axes(s.grid.axes.data(), 2);
  return s.grid.rank == 2 && std::ranges::all_of(axes, is_point) &&
         (axes[0].stride > 1 || axes[1].stride > 1);
}

// The shape over the positions that are read.
inline ConvShape gathered(ConvShape s) {
  s.grid.input_size = s.grid.output_size;
  for (size_t i = 0; i < 2; ++i) {
    s.grid.input[i] = s.grid.output[i];
    s.grid.axes[i].stride = 1;
  }
  return s;
}

// How a call falls into parts: images, groups, then bands of positions, then sets of panels.
struct ConvPartition {
  int64_t images, groups, bands, panel_sets;
  // Parts of a panel follow each other: threads read different weights, of which there is more to
  // read than of such images.
  bool is_by_panels = false;

  // `most_parts`: of an image's group.
  ConvPartition(const ConvShape& s, const ConvPlane& plane, int64_t num_panels,
                int64_t most_parts = kMaxConvParts) {
    images = s.batch;
    groups = s.group;
    const int64_t work =
        s.grid.output_size * s.group_filters() * s.group_channels() * s.grid.kernel_size;
    const int64_t most =
        std::max<int64_t>(kMaxConvParts / std::max<int64_t>(images * groups, 1), 1);
    const int64_t wanted = count_parts(work, kConvPartWork, std::min(most, most_parts));
    const int64_t units = plane.is_line() ? plane.out_columns : plane.out_rows;
    const auto most_bands = [&](int64_t positions) {
      return std::max<int64_t>(std::min(s.grid.output_size / positions, units), 1);
    };
    bands = count_bands(most_bands(kMinPositions), wanted);
    panel_sets = std::clamp<int64_t>(div_up(wanted, bands), 1, num_panels);
    // Few panels divide badly among threads.
    constexpr int64_t kFewPanels = 8;
    if (bands == 1 && panel_sets < std::min(wanted, kFewPanels)) {
      bands = std::min<int64_t>(most_bands(kMinPositions / 2), 2);
      is_by_panels = true;
    }
  }
  int64_t count() const { return images * groups * bands * panel_sets; }
  struct Place {
    int64_t band, panel_set, image, group;
  };
  Place place_of(int64_t part) const {
    EDDY_DCHECK(part < count()) << "part " << part << " of " << count();
    const int64_t of_both = part % (bands * panel_sets), rest = part / (bands * panel_sets);
    const int64_t band = is_by_panels ? of_both % bands : of_both / panel_sets;
    const int64_t panel_set = is_by_panels ? of_both / bands : of_both % panel_sets;
    return {band, panel_set, rest / groups, rest % groups};
  }
};

}  // namespace eddy::cpu
