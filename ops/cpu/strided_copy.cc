#include "ops/cpu/strided_copy.h"

#include <string>

#include "graph/base/check.h"
#include "ops/cpu/transpose/transpose.h"
#include "ops/reference/parts/storage.h"

namespace eddy {
namespace {

// Steps through all but the skipped axes, in row-major order, keeping the input's offset.
class Odometer {
 public:
  Odometer(const int64_t* sizes, const int64_t* strides, int rank)
      : sizes_(sizes), strides_(strides), rank_(rank) {
    EDDY_DCHECK(rank >= 0 && rank <= StridedCopy::kMaxAxes) << rank << " axes";
    for (int d = 0; d < rank; ++d) at_[d] = 0;
  }
  int64_t offset() const { return offset_; }
  // False when it has come round.
  bool next() {
    for (int d = rank_ - 1; d >= 0; --d) {
      offset_ += strides_[d];
      if (++at_[d] < sizes_[d]) return true;
      offset_ -= sizes_[d] * strides_[d];
      at_[d] = 0;
    }
    return false;
  }

 private:
  const int64_t* sizes_;
  const int64_t* strides_;
  int rank_;
  int64_t offset_ = 0;
  int64_t at_[StridedCopy::kMaxAxes];
};

template <typename T>
void copy_row(const T* in, int64_t stride, T* out, int64_t size) {
  if (stride == 1) {
    copy_run(in, out, size);
  } else if (stride == 0) {
    std::fill_n(out, size, *in);
  } else {
    for (int64_t i = 0; i < size; ++i) out[i] = in[i * stride];
  }
}

// out[a * out_stride + b] = in[a + b * in_stride] for a < rows, b < columns.
template <typename T>
void transpose_block(const T* in, int64_t in_stride, T* out, int64_t out_stride, int64_t rows,
                     int64_t columns) {
  for (int64_t a = 0; a < rows; ++a) {
    for (int64_t b = 0; b < columns; ++b) out[a * out_stride + b] = in[a + b * in_stride];
  }
}

// A block is small enough that both its sides stay in the first-level cache.
constexpr int64_t kBlock = 32;

template <typename T>
void transpose_plane(const T* in, int64_t in_stride, T* out, int64_t out_stride, int64_t rows,
                     int64_t columns) {
  for (int64_t a = 0; a < rows; a += kBlock) {
    for (int64_t b = 0; b < columns; b += kBlock) {
      transpose_block(in + a + b * in_stride, in_stride, out + a * out_stride + b, out_stride,
                      std::min(kBlock, rows - a), std::min(kBlock, columns - b));
    }
  }
}

template <>
void transpose_plane(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride,
                     int64_t rows, int64_t columns) {
  cpu::transpose_words(in, in_stride, out, out_stride, rows, columns);
}
template <>
void transpose_plane(const uint8_t* in, int64_t in_stride, uint8_t* out, int64_t out_stride,
                     int64_t rows, int64_t columns) {
  cpu::transpose_bytes(in, in_stride, out, out_stride, rows, columns);
}

}  // namespace

int StridedCopy::transposed_axis() const {
  if (rank_ < 2 || strides_[rank_ - 1] == 1 || strides_[rank_ - 1] == 0) return -1;
  for (int d = 0; d < rank_ - 1; ++d) {
    if (strides_[d] == 1 && sizes_[d] >= 4 && sizes_[rank_ - 1] >= 4) return d;
  }
  return -1;
}

template <typename T>
void StridedCopy::run_rows(const T* in, T* out) const {
  const int last = rank_ - 1;
  const int64_t size = sizes_[last], stride = strides_[last];
  Odometer at(sizes_, strides_, last);
  do {
    copy_row(in + at.offset(), stride, out, size);
    out += size;
  } while (at.next());
}

template <typename T>
void StridedCopy::run_blocks(const T* in, T* out, int axis) const {
  EDDY_DCHECK(axis >= 0 && axis < rank_ - 1 && strides_[axis] == 1) << "axis " << axis;
  // The other axes are stepped through; each step is one plane of axis and last axis.
  int64_t out_strides[kMaxAxes];
  int64_t stride = 1;
  for (int d = rank_ - 1; d >= 0; --d) {
    out_strides[d] = stride;
    stride *= sizes_[d];
  }
  int64_t sizes[kMaxAxes], from[kMaxAxes], to[kMaxAxes];
  int rank = 0;
  for (int d = 0; d < rank_ - 1; ++d) {
    if (d == axis) continue;
    sizes[rank] = sizes_[d];
    from[rank] = strides_[d];
    to[rank++] = out_strides[d];
  }
  Odometer source(sizes, from, rank), target(sizes, to, rank);
  do {
    transpose_plane(in + source.offset(), strides_[rank_ - 1], out + target.offset(),
                    out_strides[axis], sizes_[axis], sizes_[rank_ - 1]);
  } while (source.next() && target.next());
}

template <typename T>
void StridedCopy::run(const T* in, T* out) const {
  if (is_empty_) return;
  if (rank_ == 0) {
    *out = *in;
    return;
  }
  const int axis = transposed_axis();
  if (axis >= 0) {
    run_blocks(in, out, axis);
  } else {
    run_rows(in, out);
  }
}

template void StridedCopy::run(const uint8_t*, uint8_t*) const;
template void StridedCopy::run(const uint16_t*, uint16_t*) const;
template void StridedCopy::run(const uint32_t*, uint32_t*) const;
template void StridedCopy::run(const uint64_t*, uint64_t*) const;
template void StridedCopy::run(const Bytes16*, Bytes16*) const;
template void StridedCopy::run(const std::string*, std::string*) const;

}  // namespace eddy
