// CudaReport: what this machine and this build offer of CUDA, and what that allows, to be read
// before a device is chosen.
//
// Makes no context on any device. Cost: the driver's start and opening the libraries, some 100 ms
// once a process.
#pragma once

#include <string>
#include <vector>

#include "runtime/cuda/cuda_context.h"

namespace eddy {

struct CudaReport {
  // Ok: there is a driver and at least one device. Else kDeviceLost with what is missing.
  Status status;
  int driver_version = 0;         // 13000 is 13.0; 0 without a driver
  bool has_kernels = false;       // this build carries the kernels' image
  int toolkit_version = 0;        // that made it: 13000 is 13.0; 0 without
  bool has_loop_kernels = false;  // and the kernels that decide loops on the device
  std::vector<CudaDeviceFacts> devices;
  // "products by cuBLASLt 13.1.0", or what is missing; empty where there is no device.
  std::vector<std::string> libraries;
};

CudaReport report_cuda(const Result<std::shared_ptr<const CudaApi>>& api);
// Of the driver and the libraries of this machine.
CudaReport report_cuda();

// Whether there is a GPU of this number: kDeviceLost with what is missing, or which there are.
Status check_gpu(const CudaReport& report, int ordinal);

// "kernels for ..., made by CUDA 13.0", and whether the driver is too old for them; or that this
// build has none.
std::string cuda_kernels_text(const CudaReport& report);

// What Eddy can do with a device, one line each: "completion by words that the device writes", or
// why not: "no loops driven by the device: CUDA 12.8 or newer is needed, the driver has 12.4".
std::vector<std::string> cuda_abilities(const CudaReport& report, const CudaDeviceFacts& device);

}  // namespace eddy
