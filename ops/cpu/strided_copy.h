// StridedCopy: fills a dense row-major output from a strided view of an input. Slice, Transpose,
// Expand, Tile, DepthToSpace and SpaceToDepth are each one of these.
//
//   StridedCopy copy;
//   for (axis, outermost first) copy.add_axis(size, stride);   // stride in elements of the input
//   copy.run(first_element, output);
//
// Axes that continue each other are merged as they are added, so a slice along the first axis is
// one memcpy. Where the output's last axis is strided and another axis is not, blocks are
// transposed; a stride of 0 repeats and a negative one reverses.
//
// Not checked: the caller's sizes and strides must stay within the input.
// Cost: add_axis O(1), no allocation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "graph/base/check.h"
#include "graph/ir/types.h"

namespace eddy {

// Copies `count` elements; a call of memcpy costs more than a few moves.
template <typename T>
inline void copy_run(const T* in, T* out, int64_t count) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (count * static_cast<int64_t>(sizeof(T)) > 32) {
      std::memcpy(out, in, static_cast<size_t>(count) * sizeof(T));
      return;
    }
  }
  for (int64_t i = 0; i < count; ++i) out[i] = in[i];
}

class StridedCopy {
 public:
  static constexpr int kMaxAxes = 2 * kMaxRank;

  void add_axis(int64_t size, int64_t stride) {
    EDDY_DCHECK(size >= 0) << "an axis of " << size;
    if (size == 1) return;
    if (size == 0) is_empty_ = true;
    if (rank_ > 0 && strides_[rank_ - 1] == size * stride) {
      sizes_[rank_ - 1] *= size;
      strides_[rank_ - 1] = stride;
      return;
    }
    EDDY_DCHECK(rank_ < kMaxAxes) << "more than " << kMaxAxes << " axes";
    sizes_[rank_] = size;
    strides_[rank_++] = stride;
  }

  // T: uint8_t, uint16_t, uint32_t, uint64_t, Bytes16 or std::string.
  template <typename T>
  void run(const T* in, T* out) const;

 private:
  // The axis along which the input is contiguous, where that is not the output's last; else -1.
  int transposed_axis() const;
  template <typename T>
  void run_rows(const T* in, T* out) const;
  template <typename T>
  void run_blocks(const T* in, T* out, int axis) const;

  int rank_ = 0;
  bool is_empty_ = false;
  int64_t sizes_[kMaxAxes];
  int64_t strides_[kMaxAxes];
};

}  // namespace eddy
