// DnnHandles: cuDNN on one GPU: a handle for each stream, whichever operators run there, from the
// process's (handle_pool.h) and back to them when its stream ends.
//
// A stream of recordings gets its handle when it is made, where a program has the library's
// operators (prepare_recordings): made inside a capture, it would spoil that.
//
// Ownership: outlives whatever uses it; the launcher outlives it. Threads: any, one at a time a
// stream. Cost: a lookup; a new handle, some ms.
// Errors: the library's errors, by the call's name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
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
  // Calls it with a handle of no stream, which questions take; in the device's context.
  Status with_any(const std::function<Status(DnnHandle)>& call);
  // From now on streams of recordings have handles from the beginning.
  void prepare_recordings();
  // kUnsupported: the call was refused for its parameters (is_dnn_refusal); kRunFailed: any other
  // error.
  Status check(int status, const char* call) const;
  // Of streams, and left for the next: as many as have been needed at once.
  size_t num_handles() const;
  // What the library has no way for, or has refused, the first kMostRefusals: our own kernel takes
  // longer, so it should be reported.
  static constexpr size_t kMostRefusals = 16;
  void note_refusal(std::string refusal);
  std::vector<std::string> refusals() const;

 private:
  Result<DnnHandle> take();
  DnnHandles(std::shared_ptr<const CudnnApi> api, CudaLauncher& launcher)
      : api_(std::move(api)), launcher_(launcher) {}
  void give_back(DnnHandle handle) const;
  void end_stream(NativeStream stream);

  const std::shared_ptr<const CudnnApi> api_;
  CudaLauncher& launcher_;
  mutable std::mutex mutex_;
  // Under the mutex.
  std::map<NativeStream, DnnHandle> handles_;
  bool prepares_recordings_ = false;
  std::vector<std::string> refusals_;
};

}  // namespace eddy
