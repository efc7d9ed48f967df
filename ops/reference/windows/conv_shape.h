// ConvShape: everything about one convolution but its data, from attributes and actual shapes.
//
// For a transposed convolution the grid is that of the ordinary one it transposes: windows lie on
// its output (grid.input) and step once for each element of its input (grid.output).
//
// Errors: kInvalidArgument as in ops/schema/rules/window.h, when the shapes do not fit the
// attributes.
#pragma once

#include "graph/base/check.h"
#include "graph/ir/attributes.h"
#include "ops/reference/parts/window_walk.h"

namespace eddy {

struct ConvShape {
  Grid grid;
  int64_t batch = 0;
  int64_t channels = 0;  // of the input X
  int64_t filters = 0;   // channels of the output Y
  int64_t group = 1;

  int64_t group_channels() const { return channels / group; }
  int64_t group_filters() const { return filters / group; }
};

inline Status make_conv_shape(const Attributes& attributes, const TensorView& x,
                              const TensorView& w, const TensorView& y, ConvShape& shape) {
  EDDY_DCHECK(x.rank >= 3 && w.rank == x.rank && y.rank == x.rank)
      << "ranks " << x.rank << ", " << w.rank << " and " << y.rank;
  const Dims kernel = spatial_dims(w);
  Windows windows;
  EDDY_RETURN_IF_ERROR(parse_windows(attributes, x.rank - 2, &kernel, windows));
  EDDY_RETURN_IF_ERROR(make_grid(windows, x, y, shape.grid));
  shape.batch = x.dims[0];
  shape.channels = x.dims[1];
  shape.filters = y.dims[1];
  shape.group = attributes.get_int("group", 1);
  return Status::ok();
}

// Of images [c, n, h, w], windows [c, f, h, w] and results [f, n, h, w]: as without the swap.
inline Status make_swapped_conv_shape(const Attributes& attributes, const TensorView& x,
                                      const TensorView& w, const TensorView& y, ConvShape& shape) {
  EDDY_DCHECK(x.rank >= 3 && w.rank == x.rank && y.rank == x.rank)
      << "ranks " << x.rank << ", " << w.rank << " and " << y.rank;
  EDDY_RETURN_IF_ERROR(make_conv_shape(attributes, x, w, y, shape));
  shape.batch = x.dims[1];
  shape.channels = x.dims[0];
  shape.filters = w.dims[1];
  return Status::ok();
}

inline Status make_transposed_conv_shape(const Attributes& attributes, const TensorView& x,
                                         const TensorView& w, const TensorView& y,
                                         ConvShape& shape) {
  EDDY_DCHECK(x.rank >= 3 && w.rank == x.rank && y.rank == x.rank)
      << "ranks " << x.rank << ", " << w.rank << " and " << y.rank;
  const Dims kernel = spatial_dims(w);
  TransposedWindows windows;
  EDDY_RETURN_IF_ERROR(parse_transposed_windows(attributes, x.rank - 2, &kernel, windows));
  shape.grid.rank = x.rank - 2;
  for (int i = 0; i < shape.grid.rank; ++i) {
    int64_t output;
    EDDY_RETURN_IF_ERROR(resolve_transposed_axis(windows, i, x.dims[i + 2],
                                                 shape.grid.axes[static_cast<size_t>(i)], output));
  }
  shape.grid.set_sizes(y, x);
  shape.batch = x.dims[0];
  shape.channels = x.dims[1];
  shape.filters = y.dims[1];
  shape.group = attributes.get_int("group", 1);
  return Status::ok();
}

}  // namespace eddy
