// DnnLibrary: cuDNN on one GPU: its families of operators, on one set of handles.
//
//   EDDY_ASSIGN_OR_RETURN(auto dnn, DnnLibrary::create(api, launcher, {}));
//   dnn->convolutions().run(args, element, params);  // false: our own kernel is to do it
//
// Ownership: outlives every kernel bound on it; the launcher outlives it. Threads: any, one at a
// time a stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/cuda/libraries/dnn_convolutions.h"
#include "ops/cuda/libraries/dnn_norms.h"
#include "ops/cuda/libraries/dnn_pools.h"

namespace eddy {

class DnnLibrary {
 public:
  // Fails where the library has no handle to give (a device it does not support).
  static Result<std::unique_ptr<DnnLibrary>> create(std::shared_ptr<const CudnnApi> api,
                                                    CudaLauncher& launcher,
                                                    const DnnOptions& options) {
    EDDY_ASSIGN_OR_RETURN(auto handles, DnnHandles::create(std::move(api), launcher));
    return std::unique_ptr<DnnLibrary>(new DnnLibrary(std::move(handles), options));
  }
  DnnConvolutions& convolutions() { return convolutions_; }
  DnnPools& pools() { return pools_; }
  DnnNorms& norms() { return norms_; }
  // A program has an operator that runs here.
  void expect_use() { handles_->prepare_recordings(); }
  // Of streams, and left for the next: as many as have been needed at once.
  size_t num_handles() const { return handles_->num_handles(); }
  // A line each, of convolutions that our own kernels do instead.
  std::vector<std::string> refusals() const { return handles_->refusals(); }

 private:
  DnnLibrary(std::unique_ptr<DnnHandles> handles, const DnnOptions& options)
      : handles_(std::move(handles)),
        convolutions_(*handles_, options),
        pools_(*handles_, options),
        norms_(*handles_, options) {}

  const std::unique_ptr<DnnHandles> handles_;
  DnnConvolutions convolutions_;
  DnnPools pools_;
  DnnNorms norms_;
};

}  // namespace eddy
