// Sums of long lines by cub::DeviceReduce, which adds in one order for a length on a device.
#include <cub/device/device_reduce.cuh>

#include "ops/cuda/reduce/cub_entries.h"
#include "ops/cuda/reduce/cub_line_inl.h"

namespace eddy::cuda {

int cub_sum(const SumCall& call, void* scratch, size_t* scratch_bytes, void* stream) {
  cudaError_t status = cudaErrorInvalidValue;
  visit_line_type(call.line.type, [&](auto element) {
    using T = decltype(element);
    const SumJoin<T> join{call.sum == LineSum::kProd};
    status = run_cub([&] {
      return cub::DeviceReduce::Reduce(scratch, *scratch_bytes, Reader<SumTerms<T>>{{call}},
                                       Writer<SumStore<T>, sum_t<T>>{{call}}, call.line.length,
                                       join, join.start(), static_cast<cudaStream_t>(stream));
    });
  });
  return status;
}

}  // namespace eddy::cuda
