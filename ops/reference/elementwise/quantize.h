// Which scale stands behind an element: shared by reference and fast quantization.
#pragma once

#include <cstdint>

#include "ops/contract/kernel.h"

namespace eddy {

// The input as [outer, count, inner] along the axis; the scale's index of (o, j, i) is
//   o * outer_step + j / block_size * block_step + i * inner_step.
struct ScaleMap {
  int64_t outer = 1;
  int64_t count = 1;
  int64_t inner = 1;
  int64_t block_size = 1;
  int64_t outer_step = 0;
  int64_t block_step = 0;
  int64_t inner_step = 0;

  // The schema has checked that the scale fits.
  static ScaleMap of(const TensorView& x, const TensorView& scale, int64_t axis,
                     int64_t block_size);
};

// The range of a quantized type: integers of 4, 8 and 16 bits.
struct QuantizedRange {
  double low = 0;
  double high = 0;
};
QuantizedRange quantized_range(ElementType element);

}  // namespace eddy
