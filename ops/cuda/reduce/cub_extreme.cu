// The most extreme element of long lines, or its place, by cub::DeviceReduce.
#include <cub/device/device_reduce.cuh>

#include "ops/cuda/reduce/cub_entries.h"
#include "ops/cuda/reduce/cub_line_inl.h"

namespace eddy::cuda {

int cub_extreme(const ExtremeCall& call, void* scratch, size_t* scratch_bytes, void* stream) {
  cudaError_t status = cudaErrorInvalidValue;
  visit_line_type(call.line.type, [&](auto element) {
    using T = decltype(element);
    const ExtremeJoin join{call.takes_last != 0};
    status = run_cub([&] {
      return cub::DeviceReduce::Reduce(scratch, *scratch_bytes, Reader<ExtremeItems<T>>{{call}},
                                       Writer<ExtremeStore<T>, Extreme>{{call}}, call.line.length,
                                       join, join.start(), static_cast<cudaStream_t>(stream));
    });
  });
  return status;
}

}  // namespace eddy::cuda
