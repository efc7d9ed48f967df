// Accelerators: devices that sessions of the C interface may have beside the CPU.
//
// The interface is the same with and without: libeddy.so links no_accelerators.cc, whose only
// device is the CPU, libeddy_cuda.so cuda_accelerators.cc.
// Internal to runtime/api/c. Errors: EDDY_UNSUPPORTED where the library has no such device,
// EDDY_DEVICE_LOST where the machine has none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/contract/registry.h"
#include "runtime/api/c/refusal.h"
#include "runtime/api/session_options.h"

namespace eddy::c {

// Options of a session: `device` and what is said of it.
struct AcceleratorOptions {
  std::string device = "cpu";
  bool allows_tf32 = false;
  bool measures_convolutions = false;
  std::optional<bool> channels_last;
  std::optional<int32_t> gpu;  // its number, once it is used

  bool is_plain() const {
    return !allows_tf32 && !measures_convolutions && !channels_last.has_value();
  }
};

// Gives the session the device; `kernels`: of the caller's operators there (callers_kernels.h).
// Called with a device that is not "cpu".
Refusal use_accelerator(AcceleratorOptions& wanted, std::vector<KernelEntry> kernels,
                        SessionOptions& options);
// What the library has: "cpu", or "cpu, cuda and cuda:N (the N-th GPU, from 0)".
const char* devices_text();

}  // namespace eddy::c
