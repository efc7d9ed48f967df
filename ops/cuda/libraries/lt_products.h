// LtProducts: matrix products by cuBLASLt on one GPU: a handle of the process's, and for every
// shape met the descriptors and the algorithm that the library's heuristic names first.
//
// A product has ProductParams, as our own kernels have; for what the library does not do (several
// batch axes, a broadcast column added, transposed results, whatever it refuses at the call), and
// for what our own kernel of few rows does sooner, run() returns false, and the caller takes its
// own kernel. The heuristic runs once for each shape, type and alignment, of which the latest are
// kept (plan_cache.h). Alignments are those that follow from a matrix's size, unless it lies worse:
// where it lies, which differs between ways to drive a loop, does not choose the algorithm.
// Workspaces come from the stream's scratch memory, so concurrent streams share nothing; and the
// same shape has the same algorithm: same bits from run to run.
//
// Ownership: outlives every kernel bound on it; the launcher outlives it. Threads: any; finding a
// known shape takes a lock, the product itself none.
// Cost: a lookup and one call; the first time a shape is met, some 50 µs.
// Errors: the library's errors, by the call's name. Memory that it lacks is an error, too: a kernel
// of ours instead would give other bits in that run alone.
#pragma once

#include <memory>
#include <mutex>

#include "ops/cuda/device/params.h"
#include "ops/cuda/launch/launcher.h"
#include "ops/cuda/libraries/cublas_lt.h"
#include "ops/cuda/libraries/plan_cache.h"

namespace eddy {

struct LtOptions {
  bool allows_tf32 = false;  // float32 products may round their operands to 10 bits
  size_t max_workspace_bytes = size_t{32} << 20;
  size_t max_plans = 4096;  // some KiB each
  // Products of at most four rows or columns are not the library's where the matrices on their
  // other side have no more elements: its kernels neither begin early nor can be called off. How
  // many is a guess; what was measured has up to 2^20 (gpu_report --part libraries has rows).
  int64_t most_of_few_rows = int64_t{1} << 23;
  // Nor float32 products in TF32 of so few additions, for the same reason; half as many were
  // measured.
  int64_t most_of_tensor_tile = int64_t{1} << 26;
};

class LtProducts {
 public:
  static Result<std::unique_ptr<LtProducts>> create(std::shared_ptr<const CublasLtApi> api,
                                                    CudaLauncher& launcher,
                                                    const LtOptions& options);
  ~LtProducts();
  LtProducts(const LtProducts&) = delete;
  LtProducts& operator=(const LtProducts&) = delete;

  static bool has_type(ElementType element);
  // Of how many additions products may be for our own kernel on tensor cores; 0: without TF32.
  int64_t most_of_tensor_tile() const {
    return options_.allows_tf32 ? options_.most_of_tensor_tile : 0;
  }
  // Enqueues the product. False in the result: the library has no way for it.
  Result<bool> run(const KernelArgs& args, ElementType element, const cuda::ProductParams& params);

  size_t num_plans() const;

 private:
  struct Plan;
  using Key = PlanCache<Plan>::Key;

  LtProducts(std::shared_ptr<const CublasLtApi> api, CudaLauncher& launcher,
             const LtOptions& options);
  bool is_of_few_rows(const cuda::ProductParams& params) const;
  Status check(int status, const char* call) const;
  Result<std::shared_ptr<Plan>> find(const Key& key, ElementType element,
                                     const cuda::ProductParams& params);
  Status make_plan(Plan& plan, const Key& key, ElementType element,
                   const cuda::ProductParams& params);

  const std::shared_ptr<const CublasLtApi> api_;
  CudaLauncher& launcher_;
  const LtOptions options_;
  LtHandle handle_ = nullptr;
  mutable std::mutex mutex_;
  PlanCache<Plan> plans_;  // under the mutex
};

}  // namespace eddy
