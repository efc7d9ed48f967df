// DnnPools: MaxPool and AveragePool by cuDNN, on two and three spatial axes, descriptors kept for
// every shape met.
//
// A pool has PoolParams, as our own kernel has. run() returns false, and the caller takes its own
// kernel, where the library has no such pool: indices wanted, dilations, sizes that do not follow
// from one padding for both ends (ceil_mode's further windows), padding as wide as the window, an
// average that counts less than the whole window; for small inputs (least_pool_elements) and more
// than 65535 in batch or channels; and for whatever the library refuses at the call. A NaN in
// a window is its greatest element, as in the reference; averages are summed in float32 (float64's
// in float64), where our own kernel sums in float64.
//
// Ownership: outlives every kernel bound on it; the handles outlive it. Threads: any, one at a time
// a stream; finding a known shape takes a lock. Cost: a lookup and one call.
// Errors: the library's errors, by the call's name.
#pragma once

#include "ops/cuda/libraries/dnn_options.h"
#include "ops/cuda/libraries/dnn_plans.h"
#include "ops/cuda/libraries/dnn_shapes.h"

namespace eddy {

class DnnPools {
 public:
  DnnPools(DnnHandles& handles, const DnnOptions& options)
      : handles_(handles), options_(options), plans_(handles, options.max_plans) {}

  static bool has_type(ElementType element) { return has_dnn_type(element); }
  // Enqueues the pool of [batch, channels, window.in], or with the channels last. False in the
  // result: the library has no way for it.
  Result<bool> run(const KernelArgs& args, ElementType element, bool is_max, int64_t batch,
                   int64_t channels, const cuda::PoolParams& params);

 private:
  struct Plan {
    DnnDescriptor<DnnTensor> x, y;
    DnnDescriptor<DnnPooling> pooling;
  };
  Result<bool> describe(Plan& plan, ElementType element, DnnPoolMode mode, int64_t batch,
                        int64_t channels, const cuda::PoolParams& params) const;

  DnnHandles& handles_;
  const DnnOptions options_;
  DnnPlans<Plan> plans_;
};

}  // namespace eddy
