// fault_status: what a kernel on the host would have reported with KernelArgs::fail().
#pragma once

#include "graph/base/status.h"
#include "ops/contract/device_fault.h"

namespace eddy {

// Ok for DeviceFault::kNone.
Status fault_status(const DeviceFault& fault);

}  // namespace eddy
