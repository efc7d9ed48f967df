// WindowWalk: for one output position, the pairs of (input position, kernel tap) that a window
// touches, on up to kMaxSpatialRank axes; shared by the plain loops of convolutions and pools.
//
//   Grid grid = ...;
//   for (Position out(grid.output, rank); !out.done(); out.next())
//     for (Position tap(grid.kernel, rank); !tap.done(); tap.next())
//       if (grid.input_index(out, tap, index)) use(index, tap.index());
//
// Errors: none; the schema's rules have checked the sizes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "graph/base/check.h"
#include "graph/ir/tensor_view.h"
#include "ops/schema/rules/window.h"

namespace eddy {

using SpatialDims = std::array<int64_t, kMaxSpatialRank>;

// Counts through a grid in row-major order.
class Position {
 public:
  Position(const SpatialDims& dims, int rank) : dims_(dims), rank_(rank) {
    for (int i = 0; i < rank; ++i) done_ |= dims[static_cast<size_t>(i)] <= 0;
  }
  bool done() const { return done_; }
  int64_t index() const { return index_; }
  int64_t operator[](int i) const { return at_[static_cast<size_t>(i)]; }

  void next() {
    ++index_;
    for (int i = rank_ - 1; i >= 0; --i) {
      const auto axis = static_cast<size_t>(i);
      if (++at_[axis] < dims_[axis]) return;
      at_[axis] = 0;
    }
    done_ = true;
  }

 private:
  const SpatialDims& dims_;
  int rank_;
  bool done_ = false;
  int64_t index_ = 0;
  SpatialDims at_{};
};

struct Grid {
  int rank = 0;
  SpatialDims input{}, kernel{}, output{};
  std::array<WindowAxis, kMaxSpatialRank> axes{};
  int64_t input_size = 1, kernel_size = 1, output_size = 1;

  // Fills the sizes from axes and from tensors shaped [batch, channels, spatial...].
  void set_sizes(const TensorView& x, const TensorView& y) {
    EDDY_DCHECK(x.rank == rank + 2 && y.rank == rank + 2)
        << rank << " spatial axes, ranks " << x.rank << " and " << y.rank;
    for (int i = 0; i < rank; ++i) {
      const auto at = static_cast<size_t>(i);
      input[at] = x.dims[i + 2];
      output[at] = y.dims[i + 2];
      kernel[at] = axes[at].kernel;
      input_size *= input[at];
      output_size *= output[at];
      kernel_size *= kernel[at];
    }
  }

  // Flat index of the input element under `tap`, counted from first_tap, of the window at `out`;
  // false in the padding.
  bool input_index(const Position& out, const Position& tap, int64_t& index,
                   const SpatialDims& first_tap = {}) const {
    index = 0;
    for (int i = 0; i < rank; ++i) {
      const auto at = static_cast<size_t>(i);
      const WindowAxis& axis = axes[at];
      const int64_t place =
          out[i] * axis.stride + (first_tap[at] + tap[i]) * axis.dilation - axis.pad_begin;
      if (place < 0 || place >= input[at]) return false;
      index = index * input[at] + place;
    }
    return true;
  }

  // The taps of the window at `out` that are inside the input: `count` of them from `first` on, on
  // each axis. No walk through the padding, which may be far larger than the input.
  void taps_inside(const Position& out, SpatialDims& first, SpatialDims& count) const {
    for (int i = 0; i < rank; ++i) {
      const auto at = static_cast<size_t>(i);
      const WindowAxis& axis = axes[at];
      const int64_t start = out[i] * axis.stride - axis.pad_begin;
      const auto taps_before = [&axis](int64_t distance) {
        return distance <= 0 ? 0 : (distance + axis.dilation - 1) / axis.dilation;
      };
      first[at] = std::min(taps_before(-start), axis.kernel);
      count[at] =
          std::max<int64_t>(std::min(taps_before(input[at] - start), axis.kernel) - first[at], 0);
    }
  }
};

// The grid of a convolution or pool for actual tensors.
inline Status make_grid(const Windows& windows, const TensorView& x, const TensorView& y,
                        Grid& grid) {
  grid.rank = windows.rank;
  for (int i = 0; i < windows.rank; ++i) {
    int64_t output;
    EDDY_RETURN_IF_ERROR(
        resolve_axis(windows, i, x.dims[i + 2], grid.axes[static_cast<size_t>(i)], output));
  }
  grid.set_sizes(x, y);
  return Status::ok();
}

// The spatial dimensions of a tensor [.., .., spatial...].
inline Dims spatial_dims(const TensorView& view) {
  Dims dims;
  for (int i = 2; i < view.rank; ++i) dims.push_back(view.dims[i]);
  return dims;
}

}  // namespace eddy
