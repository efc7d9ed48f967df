// DnnConvolutions: convolutions by cuDNN on one GPU: a handle for each stream, given to another
// stream when its own ends (making and destroying them stops the device), and for every shape
// met the descriptors and the algorithm that the library names first.
//
// A convolution is asked for by ConvParams, as our own kernels are; what the library does not do
// (padding that differs at the two ends beyond what the strides make of it, no deterministic
// algorithm within the workspace, whatever it refuses when it is asked) is answered with false, and
// the caller takes its own kernel. Algorithms are asked for once for each shape and type, of which
// the latest are kept (plan_cache.h); only deterministic ones are taken: same bits from run to run.
//
// Ownership: outlives every kernel bound on it; the launcher outlives it. Threads: any, one at a
// time a stream; finding a known shape takes a lock.
// Cost: a lookup and one call, with a bias two; the first time a shape is met, some 100 µs.
// Errors: what the library answers, by the call's name.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ops/cuda/cudnn.h"
#include "ops/cuda/launcher.h"
#include "ops/cuda/params.h"
#include "ops/cuda/plan_cache.h"

namespace eddy {

struct DnnOptions {
  bool allows_tf32 = false;  // float32 products may round their operands to 10 bits
  size_t max_workspace_bytes = size_t{256} << 20;
  size_t max_plans = 1024;  // some KiB each
};

class DnnConvolutions {
 public:
  // Fails where the library has no handle to give (a device it does not know).
  static Result<std::unique_ptr<DnnConvolutions>> create(std::shared_ptr<const CudnnApi> api,
                                                         CudaLauncher& launcher,
                                                         const DnnOptions& options);
  ~DnnConvolutions();
  DnnConvolutions(const DnnConvolutions&) = delete;
  DnnConvolutions& operator=(const DnnConvolutions&) = delete;

  static bool has_type(ElementType element);
  // Enqueues the convolution. False in the result: the library has no way for it.
  Result<bool> run(const KernelArgs& args, ElementType element, const cuda::ConvParams& params);
  // Made so far and not destroyed: as many as streams have needed one at once.
  size_t num_handles() const;

 private:
  struct Plan;
  using Key = PlanCache<Plan>::Key;

  DnnConvolutions(std::shared_ptr<const CudnnApi> api, CudaLauncher& launcher,
                  const DnnOptions& options);
  Status check(int status, const char* call) const;
  Result<DnnHandle> handle_of(NativeStream stream);
  Result<DnnHandle> take_handle();
  void free_handle(DnnHandle handle);
  void end_stream(NativeStream stream);
  Result<std::shared_ptr<Plan>> find(DnnHandle handle, ElementType element,
                                     const cuda::ConvParams& params);
  Status describe(Plan& plan, ElementType element, const cuda::ConvParams& params) const;
  Status choose(DnnHandle handle, Plan& plan) const;
  Status enqueue(const KernelArgs& args, DnnHandle handle, const Plan& plan,
                 const cuda::ConvParams& params) const;

  const std::shared_ptr<const CudnnApi> api_;
  CudaLauncher& launcher_;
  const DnnOptions options_;
  mutable std::mutex mutex_;
  // Under the mutex.
  std::map<NativeStream, DnnHandle> handles_;
  std::vector<DnnHandle> free_handles_;  // of no stream
  PlanCache<Plan> plans_;
};

}  // namespace eddy
