// Pool: which elements the windows of a pool read, on one to three axes.
//
// Threads: a value. Cost: O(1).
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/base/check.h"
#include "ops/reference/parts/window_walk.h"

namespace eddy::cpu {

inline int64_t num_planes(const TensorView& x) { return x.dims[0] * x.dims[1]; }
inline int64_t plane_size(const TensorView& x) {
  EDDY_DCHECK(x.rank >= 3) << "no spatial axes";
  int64_t size = 1;
  for (int i = 2; i < x.rank; ++i) size *= x.dims[i];
  return size;
}

struct Pool {
  static constexpr int kRank = 3;  // fewer axes are filled up with axes of size 1

  // Input positions first, first + step, ... below end; `padded` is the number of taps that lie in
  // the padded input.
  struct Range {
    int64_t first = 0, end = 1, step = 1, padded = 1;
    int64_t taps() const { return first < end ? (end - first + step - 1) / step : 0; }
  };
  // Windows [begin, end) of an axis, which reach into no padding along it.
  struct Inner {
    int64_t begin = 0, end = 0;
    bool contains(int64_t window) const { return begin <= window && window < end; }
    int64_t count() const { return end - begin; }
  };

  int64_t input[kRank], output[kRank];
  WindowAxis axes[kRank];

  explicit Pool(const Grid& grid) {
    EDDY_DCHECK(grid.rank > 0 && grid.rank <= kRank) << grid.rank << " spatial axes";
    for (int i = 0; i < kRank; ++i) {
      const int own = i - (kRank - grid.rank);
      const auto at = static_cast<size_t>(own < 0 ? 0 : own);
      input[i] = own < 0 ? 1 : grid.input[at];
      output[i] = own < 0 ? 1 : grid.output[at];
      axes[i] = own < 0 ? WindowAxis() : grid.axes[at];
    }
  }

  // There is one window, of all elements and no padding.
  bool is_whole_plane() const {
    for (int i = 0; i < kRank; ++i) {
      const WindowAxis& axis = axes[i];
      const bool is_whole = output[i] == 1 && axis.kernel == input[i] && axis.dilation == 1 &&
                            axis.pad_begin == 0 && axis.pad_end == 0;
      if (!is_whole) return false;
    }
    return true;
  }

  Range range(int i, int64_t out) const {
    const WindowAxis& axis = axes[i];
    const int64_t start = out * axis.stride - axis.pad_begin;
    Range r;
    r.step = axis.dilation;
    r.first = start >= 0 ? start : start + (-start + r.step - 1) / r.step * r.step;
    r.end = std::min(start + axis.extent(), input[i]);
    const int64_t room = input[i] + axis.pad_end - start;
    r.padded = std::min(axis.kernel, (room + r.step - 1) / r.step);
    return r;
  }

  Inner inner(int i) const {
    const WindowAxis& axis = axes[i];
    const int64_t last = input[i] - axis.extent() + axis.pad_begin;
    const int64_t begin = std::min((axis.pad_begin + axis.stride - 1) / axis.stride, output[i]);
    const int64_t end = last < 0 ? 0 : std::min(last / axis.stride + 1, output[i]);
    EDDY_DCHECK(0 <= begin && end <= output[i]) << "windows " << begin << " to " << end;
    return {begin, std::max(begin, end)};
  }
};

}  // namespace eddy::cpu
