// ResizeAxis: which elements of one axis each output position reads, and with which weights.
//
// Errors: none; the input has elements, and without output elements there are no taps. Cost:
// O(output * taps). Source: ONNX operator Resize, opset 19; cubic convolution after Keys (1981).
#pragma once

#include "ops/schema/windows/resize_rules.h"

namespace eddy {

struct ResizeAxis {
  int64_t input = 1, output = 1;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;  // tf_crop_and_resize only

  // Elements read by each output position.
  int64_t num_taps(const ResizeRules& rules) const;
  // Position in the input, in elements, of output position `out`.
  double coordinate(const ResizeRules& rules, int64_t out) const;
  // Fills num_taps() indices and weights; false when the position lies outside the input and
  // takes the extrapolation value (tf_crop_and_resize).
  bool fill(const ResizeRules& rules, int64_t out, int64_t* indices, double* weights) const;

 private:
  double filter_scale(const ResizeRules& rules) const;
};

}  // namespace eddy
