// DnnHandles: cuDNN on one GPU: a handle for each stream, whichever operators run there, given to
// another stream when its own ends (making and destroying them stops the device).
//
// Ownership: outlives whatever uses it; the launcher outlives it. Threads: any, one at a time a
// stream. Cost: a lookup; a new handle, some ms.
// Errors: the library's errors, by the call's name.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ops/cuda/launch/launcher.h"
#include "ops/cuda/libraries/cudnn.h"

namespace eddy {

class DnnHandles {
 public:
  // Fails where the library has no handle to give (a device it does not support).
  static Result<std::unique_ptr<DnnHandles>> create(std::shared_ptr<const CudnnApi> api,
                                                    CudaLauncher& launcher);
  ~DnnHandles();
  DnnHandles(const DnnHandles&) = delete;
  DnnHandles& operator=(const DnnHandles&) = delete;

  const CudnnApi& api() const { return *api_; }
  CudaLauncher& launcher() const { return launcher_; }
  // The device's context is current.
  Result<DnnHandle> of(NativeStream stream);
  // kUnsupported: the call was refused for its parameters (is_dnn_refusal); kRunFailed: any other
  // error.
  Status check(int status, const char* call) const;
  // Made so far and not destroyed: as many as streams have needed one at once.
  size_t num_handles() const;

 private:
  DnnHandles(std::shared_ptr<const CudnnApi> api, CudaLauncher& launcher)
      : api_(std::move(api)), launcher_(launcher) {}
  Result<DnnHandle> take_handle();
  void free_handle(DnnHandle handle);
  void end_stream(NativeStream stream);

  const std::shared_ptr<const CudnnApi> api_;
  CudaLauncher& launcher_;
  mutable std::mutex mutex_;
  // Under the mutex.
  std::map<NativeStream, DnnHandle> handles_;
  std::vector<DnnHandle> free_handles_;  // of no stream
};

}  // namespace eddy
