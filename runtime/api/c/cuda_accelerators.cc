#include <utility>

#include "runtime/api/c/accelerators.h"
#include "runtime/cuda/cuda_report.h"
#include "runtime/cuda/make_cuda_device.h"

namespace eddy::c {

Refusal use_accelerator(AcceleratorOptions& wanted, std::vector<KernelEntry> kernels,
                        SessionOptions& options) {
  const std::optional<int> ordinal = cuda_ordinal(wanted.device);
  if (!ordinal) {
    return {EDDY_INVALID_ARGUMENT,
            "option 'device' is '" + wanted.device + "'; give " + devices_text()};
  }
  const std::string option = "option 'device' = '" + wanted.device + "'";
  Status status = check_gpu(report_cuda(), *ordinal);
  if (!status.is_ok()) return std::move(status.prepend_message(option));
  wanted.gpu = *ordinal;
  const CudaOptions cuda{.device = {.ordinal = *ordinal},
                         .allows_tf32 = wanted.allows_tf32,
                         .measures_convolutions = wanted.measures_convolutions,
                         .channels_last = wanted.channels_last,
                         .kernels = std::move(kernels)};
  options.make_devices = {[option, cuda] {
    Result<ExecutionDevice> made = make_cuda_device(cuda);
    if (made.is_ok()) return made;
    return Result<ExecutionDevice>(std::move(made.take_status().prepend_message(option)));
  }};
  return {};
}

const char* devices_text() { return "cpu, cuda or cuda:N (the N-th GPU, from 0)"; }

}  // namespace eddy::c
