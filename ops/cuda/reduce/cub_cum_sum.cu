// Running sums of integers along long lines by cub::DeviceScan. Not of floats: its order of adding
// changes from run to run (CUB's documentation of DeviceScan: "results are not deterministic for
// pseudo-associative operators"), which words that wrap do not notice.
#include <cub/device/device_scan.cuh>

#include "ops/cuda/reduce/cub_entries.h"
#include "ops/cuda/reduce/cub_line_inl.h"

namespace eddy::cuda {

int cub_cum_sum(const CumSumCall& call, void* scratch, size_t* scratch_bytes, void* stream) {
  cudaError_t status = cudaErrorInvalidValue;
  visit_integer_type(call.line.type, [&](auto element) {
    using T = decltype(element);
    status = run_cub([&] {
      return cub::DeviceScan::InclusiveSum(scratch, *scratch_bytes, Reader<CumSumTerms<T>>{{call}},
                                           Writer<CumSumStore<T>, uint64_t>{{call}},
                                           call.line.length, static_cast<cudaStream_t>(stream));
    });
  });
  return status;
}

}  // namespace eddy::cuda
