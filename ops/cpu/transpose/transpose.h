// transpose_words, transpose_bytes: turn a matrix of 32-bit or 8-bit elements over, for layouts
// that change on the way in and out of a library (channels first, channels last), for quantized
// weights, and for Transpose itself.
//
//   out[a * out_stride + b] = in[a + b * in_stride]   for a < rows, b < columns
//
// so `rows` and `columns` are those of the result. Elements are copied bit for bit, floats too.
//
// The order suits caches: lines of the side with the larger stride are read, or written, to their
// ends at once, four side by side. Else those a power of two apart (planes of 32 x 32 floats are)
// would drive each other out of the few places that they compete for.
//
// Contract: strides in elements; the areas don't overlap. No alignment is required.
// Errors: none. Threads: a pure function. Cost: O(rows * columns), no allocation.
#pragma once

#include <cstdint>

namespace eddy::cpu {

void transpose_words(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride,
                     int64_t rows, int64_t columns);
inline void transpose_words(const float* in, int64_t in_stride, float* out, int64_t out_stride,
                            int64_t rows, int64_t columns) {
  transpose_words(reinterpret_cast<const uint32_t*>(in), in_stride,
                  reinterpret_cast<uint32_t*>(out), out_stride, rows, columns);
}
void transpose_bytes(const uint8_t* in, int64_t in_stride, uint8_t* out, int64_t out_stride,
                     int64_t rows, int64_t columns);

}  // namespace eddy::cpu
