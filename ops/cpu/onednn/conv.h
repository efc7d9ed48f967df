// ConvPlan: one convolution of one shape as a oneDNN primitive, in the memory layout that suits
// it best, with reorders from and to plain layouts where it wants another.
//
// Batches of large images are convolved a few at a time, so that reordered copies stay in the
// second-level cache; how many depends on the shape alone.
//
// Creating one costs from tens of microseconds to milliseconds: once for each shape, never in a
// loop. Constant weights are reordered once, at creation.
//
// Contract: one to three spatial axes, float. A ConvPlan outlives its runs; run() is const.
// Errors: create fails with kUnsupported where oneDNN offers nothing better than its own
// reference loops (implementations named "ref..."), which are far slower than ours.
// Threads: any number may run one plan at once, each with scratch memory of its own.
#pragma once

#include <memory>
#include <string>

#include "graph/base/status.h"
#include "ops/reference/windows/conv_shape.h"

namespace eddy::onednn {

struct ConvOptions {
  bool is_transposed = false;
  bool has_bias = false;
  const float* constant_weights_or_null = nullptr;
};

class ConvPlan {
 public:
  static Result<std::unique_ptr<ConvPlan>> create(const ConvShape& shape,
                                                  const ConvOptions& options);
  ~ConvPlan();

  // Aligned to 64 bytes by the caller.
  size_t scratch_bytes() const;
  // `weights` in ONNX's layout; unused where they were constant. `bias` as in options.
  Status run(const float* x, const float* weights, const float* bias, float* y,
             void* scratch) const;
  // oneDNN's name of the implementation: "jit:avx512_core".
  const std::string& implementation() const;

 private:
  struct Rep;
  explicit ConvPlan(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace eddy::onednn
