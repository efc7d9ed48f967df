// DnnNorms: BatchNormalization with given moments by cuDNN, descriptors kept for every shape met.
//
// A norm has ChannelParams, as our own kernel has, all of its tensors of one type, which the
// library has for float32 and float64 (of 16-bit inputs it needs moments in float32). run() returns
// false, and the caller takes its own kernel, for small inputs (DnnOptions::least_norm_elements),
// more than 65535 in batch or channels, a negative epsilon, and whatever the library refuses.
//
// Norms of rows (layers, instances) are the library's by its graph interface alone, whose engines
// it compiles when it plans a shape (version 9.19: about a second); ours are there at once.
//
// Ownership: outlives every kernel bound on it; the handles outlive it. Threads: any, one at a time
// a stream; finding a known shape takes a lock. Cost: a lookup and one call.
// Errors: the library's errors, by the call's name.
#pragma once

#include "ops/cuda/libraries/dnn_options.h"
#include "ops/cuda/libraries/dnn_plans.h"
#include "ops/cuda/libraries/dnn_shapes.h"

namespace eddy {

class DnnNorms {
 public:
  DnnNorms(DnnHandles& handles, const DnnOptions& options)
      : handles_(handles), options_(options), plans_(handles, options.max_plans) {}

  static bool has_type(ElementType element) {
    return element == ElementType::kFloat || element == ElementType::kDouble;
  }
  // Enqueues the norm. False in the result: the library has no way for it.
  Result<bool> run(const KernelArgs& args, ElementType element, const cuda::ChannelParams& params);

 private:
  struct Plan {
    DnnDescriptor<DnnTensor> x, channels;
  };

  DnnHandles& handles_;
  const DnnOptions options_;
  DnnPlans<Plan> plans_;
};

}  // namespace eddy
