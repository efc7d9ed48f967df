#include "runtime/cuda/cuda_report.h"

#include "ops/cuda/image.h"

namespace eddy {

CudaReport report_cuda(const Result<std::shared_ptr<const CudaApi>>& api) {
  CudaReport report;
  report.has_kernels = cuda_image().data != nullptr;
  if (!api.is_ok()) {
    report.status = api.status();
    return report;
  }
  (*api)->driver_version(&report.driver_version);
  Result<std::vector<CudaDeviceFacts>> devices = list_cuda_devices(**api);
  if (!devices.is_ok()) {
    report.status = devices.take_status();
  } else if (devices->empty()) {
    report.status = device_lost("the CUDA driver sees no device; run on the CPU");
  } else {
    report.devices = std::move(*devices);
  }
  return report;
}

CudaReport report_cuda() { return report_cuda(load_cuda_api()); }

std::vector<std::string> cuda_abilities(const CudaReport& report, const CudaDeviceFacts& device) {
  std::vector<std::string> lines;
  lines.push_back(report.has_kernels ? "kernels for compute capability 8.0, 9.0 and newer"
                                     : "no kernels: this build was made without --config=cuda");
  lines.push_back(device.has_memory_words
                      ? "completion by words that the device writes"
                      : "completion by asking the driver: it cannot write words in streams");
  if (device.has_device_driven) {
    lines.push_back("the driver has conditional nodes, for loops driven by the device");
  } else if (device.driver_version < CudaApi::kDeviceDrivenVersion) {
    lines.push_back(
        "no loops driven by the device: CUDA " + cuda_version_text(CudaApi::kDeviceDrivenVersion) +
        " or newer is needed, the driver has " + cuda_version_text(device.driver_version));
  } else {
    lines.push_back("no loops driven by the device: the driver lacks graph calls");
  }
  return lines;
}

}  // namespace eddy
