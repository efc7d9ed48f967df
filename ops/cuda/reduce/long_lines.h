// LongLines: reductions, ArgMax and ArgMin, running sums of integers and TopK by CUB on one GPU,
// where lines are few and long.
//
// Our own kernels give a line to a block: one launch for all lines, and right where these are many
// or short. Of few long ones they would leave most of the device idle, and TopK reads its line k
// times. There CUB is called, line by line, each by the whole device. For what it does not take
// (more lines, shorter ones, elements of a line that do not lie at one distance, running sums of
// floats, whose order CUB does not fix) the call returns false, and the caller takes its own
// kernel.
//
// The choice depends on shapes and types alone: the same bits from run to run. Places, extremes,
// integers and TopK have the same bits either way.
//
// A call is several launches of the library, none of which looks at a guard, so loops that hold one
// are not unrolled (graph/loops/unrolling.h). Scratch memory is the stream's.
// Ownership: outlives every kernel bound on it; the launcher outlives it. Threads: any.
// Errors: the library's errors, by the call's name. Memory that it lacks is an error, too: a kernel
// of ours instead would give other bits in that run alone.
#pragma once

#include <memory>
#include <span>

#include "ops/cuda/device/params.h"
#include "ops/cuda/launch/launcher.h"
#include "ops/cuda/reduce/cub.h"

namespace eddy {

// From where on CUB is called: a block of ours passes some 0.7 elements a nanosecond, a call costs
// 3.4 µs, a sort 13 to 55, and lines are called one by one. `gpu_report --part libraries` measures
// them: a sum of 4,096 takes 3.4 µs by CUB and 7.8 by ours, the greatest 32 of 1,024 take 13 and
// 86, the greatest of 50,000 takes 55 and 53 (H200).
struct LongLinesOptions {
  uint64_t min_length = 1 << 12;
  uint64_t more_a_line = 1 << 12;  // and so much more for each line beside the first
  uint64_t max_lines = 4;
  // TopK, which costs our kernel k readings of a line: from so many elements read for each line on.
  uint64_t min_top_k_work = 1 << 15;
  uint64_t max_top_k_lines = 32;
};

class LongLines {
 public:
  LongLines(std::shared_ptr<const CubApi> api, CudaLauncher& launcher,
            const LongLinesOptions& options = {});

  // Each enqueues the operator's work on all lines; false in the result: our own kernel's work.
  Result<bool> sum(const KernelArgs& args, ElementType element, cuda::LineSum sum,
                   const cuda::RowParams& rows) const;
  // Gives the elements themselves, or their places.
  Result<bool> extreme(const KernelArgs& args, ElementType element, bool is_least, bool gives_place,
                       const cuda::RowParams& rows) const;
  Result<bool> cum_sum(const KernelArgs& args, ElementType element,
                       const cuda::LineParams& lines) const;
  Result<bool> top_k(const KernelArgs& args, ElementType element,
                     const cuda::LineParams& lines) const;

 private:
  bool takes(uint64_t num_lines, uint64_t length) const;
  template <typename Call>
  Result<bool> run(const KernelArgs& args, const CubApi::Entry<Call>& entry, const char* name,
                   std::span<const Call> calls) const;

  const std::shared_ptr<const CubApi> api_;
  CudaLauncher& launcher_;
  const LongLinesOptions options_;
};

}  // namespace eddy
