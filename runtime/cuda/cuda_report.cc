#include "runtime/cuda/cuda_report.h"

#include "ops/cuda/compiled/nvrtc.h"
#include "ops/cuda/images/image.h"
#include "ops/cuda/libraries/cublas_lt.h"
#include "ops/cuda/libraries/cudnn.h"
#include "ops/cuda/reduce/cub.h"

namespace eddy {

CudaReport report_cuda(const Result<std::shared_ptr<const CudaApi>>& api) {
  CudaReport report;
  report.has_kernels = !cuda_images().empty();
  report.toolkit_version = cuda_image_toolkit();
  report.has_loop_kernels = cuda_loop_image() != nullptr;
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

namespace {

// "13.1.0" of 130100.
std::string library_version_text(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

template <typename Api>
std::string library_line(const std::string& what, const std::string& name,
                         const Result<std::shared_ptr<const Api>>& api) {
  if (!api.is_ok()) return api.status().message();
  return what + " by " + name + " " + library_version_text((*api)->version());
}

std::string cub_line(const Result<std::shared_ptr<const CubApi>>& api) {
  if (!api.is_ok()) return api.status().message();
  const int version = (*api)->version();
  return "few long lines by CUB " + std::to_string(version / 100000) + "." +
         std::to_string(version / 100 % 1000) + "." + std::to_string(version % 100);
}

std::string compiler_line(const Result<std::shared_ptr<const NvrtcApi>>& api) {
  if (!api.is_ok()) return api.status().message();
  int major = 0, minor = 0;
  (*api)->version(&major, &minor);
  return "elementwise nodes fused by NVRTC " + std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

CudaReport report_cuda() {
  CudaReport report = report_cuda(load_cuda_api());
  if (!report.status.is_ok()) return report;
  report.libraries = {library_line("products", "cuBLASLt", load_cublas_lt()),
                      library_line("convolutions", "cuDNN", load_cudnn()), cub_line(load_cub()),
                      compiler_line(load_nvrtc())};
  return report;
}

// Code is compatible with drivers of the toolkit's major version and later ones.
Status check_gpu(const CudaReport& report, int ordinal) {
  if (!report.status.is_ok()) return report.status;
  const size_t count = report.devices.size();
  if (static_cast<size_t>(ordinal) < count) return Status::ok();
  return device_lost("there is no GPU " + std::to_string(ordinal) + ", " +
                     (count == 1 ? "only GPU 0" : "only 0 to " + std::to_string(count - 1)) +
                     "; eddy info lists them");
}

std::string cuda_kernels_text(const CudaReport& report) {
  if (!report.has_kernels) return "no kernels: this build was made without a CUDA toolkit";
  std::string line = "kernels for compute capability 8.0, 9.0 and newer, made by CUDA " +
                     cuda_version_text(report.toolkit_version);
  if (report.driver_version > 0 && report.driver_version / 1000 < report.toolkit_version / 1000) {
    line += ", which the driver for CUDA " + cuda_version_text(report.driver_version) +
            " may refuse: update it, or build with its toolkit";
  }
  return line;
}

std::vector<std::string> cuda_abilities(const CudaReport& report, const CudaDeviceFacts& device) {
  std::vector<std::string> lines;
  lines.push_back(cuda_kernels_text(report));
  lines.push_back(device.has_memory_words
                      ? "completion by words that the device writes"
                      : "completion by asking the driver: it cannot write words in streams");
  lines.push_back(
      device.has_capture
          ? "loop bodies and static regions are launched as CUDA graphs"
          : "no CUDA graphs: the driver cannot capture streams into them, CUDA 12.3 can");
  if (device.has_device_driven) {
    lines.push_back("the driver has conditional nodes, for loops driven by the device");
    if (!report.has_loop_kernels) {
      lines.push_back(
          "but this build has no kernels that decide loops: it was made without a CUDA toolkit");
    }
  } else if (device.driver_version < CudaApi::kDeviceDrivenVersion) {
    lines.push_back(
        "no loops driven by the device: CUDA " + cuda_version_text(CudaApi::kDeviceDrivenVersion) +
        " or newer is needed, the driver has " + cuda_version_text(device.driver_version));
  } else {
    lines.push_back("no loops driven by the device: the driver lacks graph calls");
  }
  lines.insert(lines.end(), report.libraries.begin(), report.libraries.end());
  return lines;
}

}  // namespace eddy
