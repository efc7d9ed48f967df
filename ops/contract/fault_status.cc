#include "ops/contract/fault_status.h"

#include <string>

namespace eddy {

Status fault_status(const DeviceFault& fault) {
  const std::string value = std::to_string(fault.value), limit = std::to_string(fault.limit);
  switch (fault.kind) {
    case DeviceFault::kNone:
      return Status::ok();
    case DeviceFault::kIndex:
      return invalid_argument("index " + value + " is out of range for axis " +
                              std::to_string(fault.axis) + " of size " + limit);
    case DeviceFault::kLength:
      return invalid_argument("sequence length " + value + " is out of range 0.." + limit);
    case DeviceFault::kDivision:
      return run_failed("integer division by zero in " +
                        std::string(fault.axis == 1 ? "Mod" : "Div") + " at element " + value +
                        " of input 1");
    default:
      return internal_error("a kernel on the device left an unfinished fault record");
  }
}

}  // namespace eddy
